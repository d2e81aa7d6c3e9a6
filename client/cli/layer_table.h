// Positional and symbolic scores by layer as tables for a terminal, with what each head is called
// (common/head_label.h).
#ifndef HOPSCOPE_CLIENT_CLI_LAYER_TABLE_H_
#define HOPSCOPE_CLIENT_CLI_LAYER_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/head_label.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::cli {

// Counts, means and standard errors of separate sets of items as those of their union: exact, but
// for rounding.
struct ScoreEstimate {
  int64_t items = 0;
  double mean = 0;            // NaN where items is 0
  double standard_error = 0;  // s / sqrt(n) with s over n - 1; NaN below two items
};
ScoreEstimate Pool(const std::vector<ScoreEstimate>& parts);

// Whether LayerTables makes use of this: metrics "positional" and "symbolic" of scorer
// "positional_symbolic", and what decides whether a label can be given, "swapped_mass" and
// "contrast".
bool IsLayerScore(const v1::HeadScores& scores);

struct LayerTableOptions {
  std::vector<double> gammas = {common::kDefaultGamma};  // a label for each
  // A row for each head; otherwise layers of several heads show the mean over heads, how many heads
  // have which label, and the mean of the heads' standard errors (that of the mean is not larger).
  bool per_head = false;
  // A table for each hop count; otherwise they are pooled.
  bool by_hops = false;
  size_t width = 100;
};

// One table for each checkpoint, task, seed and set of parameters, in the order of the scores;
// added tokens across, and what does not fit into the width below.
std::vector<std::string> LayerTables(const std::vector<v1::HeadScores>& scores,
                                     const LayerTableOptions& options);

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_LAYER_TABLE_H_

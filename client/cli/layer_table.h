// Positional and symbolic scores by layer as tables for a terminal.
//
// A head is, at gamma (arXiv 2605.31558, Fig. 7; the thresholds are read off its curves):
//   positional  s_pos >= 1 - gamma and s_sym <= gamma
//   symbolic    s_sym >= 1 - gamma and s_pos <= gamma
//   diffuse     both > 1 - gamma (near-uniform attention scores high on both)
//   mixed       otherwise
#ifndef HOPSCOPE_CLIENT_CLI_LAYER_TABLE_H_
#define HOPSCOPE_CLIENT_CLI_LAYER_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::cli {

enum class HeadLabel { kPositional, kSymbolic, kDiffuse, kMixed };

HeadLabel LabelOf(double positional, double symbolic, double gamma);

// Counts, means and standard errors of separate sets of items as those of their union: exact, but
// for rounding.
struct ScoreEstimate {
  int64_t items = 0;
  double mean = 0;            // NaN where items is 0
  double standard_error = 0;  // s / sqrt(n) with s over n - 1; NaN below two items
};
ScoreEstimate Pool(const std::vector<ScoreEstimate>& parts);

// Whether LayerTables shows this: metric "positional" or "symbolic" of scorer
// "positional_symbolic".
bool IsLayerScore(const v1::HeadScores& scores);

struct LayerTableOptions {
  double gamma = 0.1;
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

// hopscope-worker score: scores of a checkpoint's heads on some sequences, as a JSON file.
//
//   {"checkpoint": NAME, "digest": "sha256:...", "dtype": "float64", "items": 64, "items_failed":
//   [],
//    "scorers": {NAME: {METRIC: {"per_item": [items][layers][heads], "mean": [layers][heads]}}}}
// A metric whose extremes matter has "min" and "max" beside "mean"; max_logit of frequency_use has
// "weighted_id": [layers][heads] (common/scores/weighted_id.h).
// A scorer with several temperatures has {"taus": [{"tau": x, METRIC: ...}, ...]} instead, one with
// further axes names them all in "axes", in the order of nesting after items; accuracy has
// {"correct": {"per_item": [items]}}. Where an item has no value there is null, and a mean leaves
// it out. "items_failed" lists items, from 0, whose logits or scores are not finite, as {"item": i,
// "reason": "NUMERIC", "message": ...}; they have no value anywhere.
//
// A scorer that takes parameters has them in "params", and in "flags" what must be known of its
// numbers (HeadScores.flags). Where the length of a sequence decides positional_symbolic's mode,
// "mode" is the one used, or "auto" and "mode_per_item" says which. Beside the metrics positional
// and symbolic stand the labels of their means, {"labels": [{"gamma": x, "heads":
// [layers][heads]}]}, common/head_label.h; null where there is none.
#ifndef HOPSCOPE_WORKER_ENGINE_OFFLINE_SCORE_H_
#define HOPSCOPE_WORKER_ENGINE_OFFLINE_SCORE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/engine/engine.h"

namespace hopscope::engine {

struct ScoreOptions {
  std::string checkpoint;  // folder
  std::string tokens;      // tokens file (tokens_file.h); "accuracy" needs a label in every line
  std::vector<std::string> scorers;    // names; at least one
  std::vector<double> taus;            // empty: the scorer's own
  std::vector<std::string> params;     // "SCORER.KEY=VALUE"
  std::vector<double> gammas;          // of labels, 0 to 0.5; empty: the usual one
  std::string dtype = "float32";       // or float64, bfloat16, float16
  std::string output;                  // file to write; appears complete or not at all
  int threads = 0;                     // 0: one for each processor that this process may use
  const CancelFlag* cancel = nullptr;  // may be null
};

// Errors as RunInspect's.
absl::Status RunScore(const ScoreOptions& options);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_OFFLINE_SCORE_H_

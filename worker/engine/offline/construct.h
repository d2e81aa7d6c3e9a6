// hopscope-worker construct and theory: checkpoints whose weights are written down, and how clearly
// they see their target at each length.
#ifndef HOPSCOPE_WORKER_ENGINE_OFFLINE_CONSTRUCT_H_
#define HOPSCOPE_WORKER_ENGINE_OFFLINE_CONSTRUCT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hopscope::engine {

struct ConstructOptions {
  std::string construction;         // "index" or "retrieval" (theory/constructions.h)
  int64_t layers = 4;               // one a hop
  std::optional<double> theta;      // radians a slot; 0.8, retrieval 0.0027
  std::optional<double> beta;       // scale of attention; 3200, retrieval 100
  std::optional<int64_t> letters;   // else those of the task: 120, retrieval 8
  std::optional<int64_t> integers;  // else those of the task: 16, retrieval 8
  std::string output;               // folder, new or empty
};

// Writes config.json and model.safetensors (float64). INVALID_ARGUMENT names the option that is
// wrong; FAILED_PRECONDITION: the folder cannot be written.
absl::Status RunConstruct(const ConstructOptions& options);

struct TheoryOptions {
  std::string construction;        // as above
  std::optional<double> theta;     // as above
  std::optional<int64_t> letters;  // retrieval alone; 8
  std::vector<int64_t> lengths;    // tokens
  bool per_offset = false;         // index alone: the gap of every offset too
  std::string output;              // file to write; empty: standard output
};

// Writes the gaps of theory/gaps.h, in units of 1 / beta, as a JSON object:
//   {"construction", "theta", ["letters", "reach",] "lengths": [{"tokens", "worst_gap", ...}]}
absl::Status RunTheory(const TheoryOptions& options);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_OFFLINE_CONSTRUCT_H_

// Options that the offline commands share, as they stand on the command line.
#ifndef HOPSCOPE_WORKER_ENGINE_OFFLINE_OPTIONS_H_
#define HOPSCOPE_WORKER_ENGINE_OFFLINE_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/checkpoint.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::engine {

// "float32", "float64", "bfloat16" or "float16"; INVALID_ARGUMENT for anything else.
absl::StatusOr<v1::Dtype> ParseDtype(absl::string_view text);

// Scorers by name, with `taus` for every one of them that takes temperatures, and params
// "SCORER.KEY=VALUE"; a list is written "1,2,3". The result is normalized
// (spec::NormalizeScorerParams). INVALID_ARGUMENT names the option that is wrong.
absl::StatusOr<std::vector<v1::ScorerSpec>> ParseScorers(const std::vector<std::string>& names,
                                                         const std::vector<double>& taus,
                                                         const std::vector<std::string>& params);

// Checkpoint::Open with the folder in front of its messages.
absl::StatusOr<checkpoint::Checkpoint> OpenCheckpoint(const std::string& folder);

// INVALID_ARGUMENT where the output would replace the tokens file.
absl::Status CheckOutput(const std::string& tokens, const std::string& output);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_OFFLINE_OPTIONS_H_

// Reads a job spec as people write it, in YAML, into the message that the API takes.
//
// The keys are those of EvalJobSpec and TaskSpec, and besides
//   seed: N          for seeds: [N]
//   window: {target: N, pre_target: N}
//   scorers          a list of names and of maps of one key, NAME: {PARAMETER: VALUE}
//   hops: 3          one value where a list is expected (also added_tokens, checkpoints, seeds,
//   scorers) dtype: float32   or float64, bfloat16, float16
// Only the form is checked here: keys, types, and that numbers fit. What a spec may say is for the
// server to check.
//
// Pure functions; thread-safe.
#ifndef HOPSCOPE_CLIENT_SPEC_YAML_H_
#define HOPSCOPE_CLIENT_SPEC_YAML_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/yaml_tree.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::client {

struct ParsedSpec {
  v1::EvalJobSpec spec;
  // Name of the file, for messages.
  std::string file;
  // Where each field stands, by the path that errors of the API use, such as spec.tasks[0].hops[3].
  std::map<std::string, YamlMark> marks;
};

// Errors are those of ParseYaml, and INVALID_ARGUMENT with reason UNKNOWN_KEY (names the nearest
// known key), WRONG_TYPE, OUT_OF_RANGE, MISSING_KEY or CONFLICTING_KEYS; all say FILE:LINE:COLUMN
// and the path of the field.
absl::StatusOr<ParsedSpec> ParseSpecYaml(absl::string_view text, absl::string_view file);

// The same for a file; "-" is standard input. NOT_FOUND or PERMISSION_DENIED where it cannot be
// read.
absl::StatusOr<ParsedSpec> ReadSpecFile(const std::string& path);

// Puts "FILE:LINE:COLUMN: " in front of an error that names a field of the spec, as errors of the
// server do; where the file does not have that field, the nearest one around it counts. Other
// errors stay as they are.
absl::Status LocateInSpec(const ParsedSpec& parsed, const absl::Status& status);

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_SPEC_YAML_H_

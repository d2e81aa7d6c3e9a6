// Reads a job spec as people write it, in YAML, into the message that the API takes.
//
// The keys are those of EvalJobSpec and TaskSpec, and besides
// - seed: N, for seeds: [N];
// - window: {target: N, pre_target: N};
// - dtype: float32, float64, bfloat16 or float16;
// - scorers: a list of names and of maps of one key, NAME: {PARAMETER: VALUE};
// - tokens_file: PATH, for the sequences that tokens_digest then refers to;
// - one value where a list is expected, such as hops: 3.
// Only the form is checked here: keys, types, and that numbers fit. What a spec may say is for the
// server to check.
//
// Pure functions; thread-safe.
#ifndef HOPSCOPE_CLIENT_SPEC_YAML_H_
#define HOPSCOPE_CLIENT_SPEC_YAML_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/yaml_tree.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::client {

struct ParsedSpec {
  v1::EvalJobSpec spec;
  // Paths of tokens files, as they are written, by the index of the task that names one.
  std::map<int, std::string> tokens_files;
  // Name of the file, for messages.
  std::string file;
  // Where each field stands, by the path that errors of the API use, such as spec.tasks[0].hops[3].
  std::map<std::string, YamlMark> marks;
};

// Errors are those of ParseYaml and YamlFields, and INVALID_ARGUMENT with reason MISSING_KEY or
// CONFLICTING_KEYS; all say FILE:LINE:COLUMN, and the path of the field where there is one.
absl::StatusOr<ParsedSpec> ParseSpecYaml(absl::string_view text, absl::string_view file);

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_SPEC_YAML_H_

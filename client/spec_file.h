// Job specs in files, and where errors are in them.
#ifndef HOPSCOPE_CLIENT_SPEC_FILE_H_
#define HOPSCOPE_CLIENT_SPEC_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/spec_yaml.h"

namespace hopscope::client {

// ParseSpecYaml for a file; "-" is standard input. NOT_FOUND or PERMISSION_DENIED where it cannot
// be read.
absl::StatusOr<ParsedSpec> ReadSpecFile(const std::string& path);

// Puts "FILE:LINE:COLUMN: " in front of an error that names a field of the spec, as errors of the
// server do; where the file does not have that field, the nearest one around it counts. Other
// errors stay as they are.
absl::Status LocateInSpec(const ParsedSpec& parsed, const absl::Status& status);

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_SPEC_FILE_H_

// What `--json` prints: messages of the API in protobuf's JSON mapping (camelCase keys, enums by
// name, 64-bit integers as texts, what has its default value left out), each on one line.
#ifndef HOPSCOPE_CLIENT_CLI_JSON_TEXT_H_
#define HOPSCOPE_CLIENT_CLI_JSON_TEXT_H_

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace hopscope::cli {

// One line, without its end.
std::string MessageJson(const google::protobuf::Message& message);

// {"error":{"code":"INVALID_ARGUMENT","reason":...,"message":...}}, with the metadata of the
// error's ErrorInfo beside these (field, value, allowed, file, line, column).
std::string ErrorJson(const absl::Status& status);

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_JSON_TEXT_H_

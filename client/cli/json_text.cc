#include "client/cli/json_text.h"

#include <map>

#include "common/status.h"
#include "google/protobuf/util/json_util.h"
#include "nlohmann/json.hpp"

namespace hopscope::cli {

using nlohmann::ordered_json;

std::string MessageJson(const google::protobuf::Message& message) {
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text);
  // Fails where a Timestamp or Struct holds what JSON cannot say, which only a broken server sends.
  if (!status.ok())
    return ErrorJson(absl::InternalError("the server's answer cannot be shown as JSON"));
  return text;
}

std::string ErrorJson(const absl::Status& status) {
  ordered_json error = ordered_json::object();
  error["code"] = absl::StatusCodeToString(status.code());
  error["reason"] = common::ErrorReason(status);
  error["message"] = std::string(status.message());
  if (const auto info = common::GetErrorInfo(status); info.has_value()) {
    const std::map<std::string, std::string> sorted(info->metadata().begin(),
                                                    info->metadata().end());
    for (const auto& [key, value] : sorted) {
      if (!error.contains(key)) error[key] = value;
    }
  }
  ordered_json json = ordered_json::object();
  json["error"] = std::move(error);
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace hopscope::cli

#include "common/rpc/protobuf_log.h"

#include <string>

#include "common/logging.h"
#include "google/protobuf/stubs/logging.h"

namespace hopscope::common {
namespace {

void Write(google::protobuf::LogLevel level, const char* file, int line,
           const std::string& message) {
  Log(level == google::protobuf::LOGLEVEL_INFO ? spdlog::level::debug : spdlog::level::warn,
      "protobuf", {{"text", message}, {"source", absl::StrCat(file, ":", line)}});
}

}  // namespace

void RouteProtobufLog() { google::protobuf::SetLogHandler(&Write); }

}  // namespace hopscope::common

#include "common/rpc/protobuf_log.h"

#include <memory>
#include <sstream>
#include <string>

#include "common/logging.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "spdlog/sinks/ostream_sink.h"

namespace hopscope::common {
namespace {

using ::testing::HasSubstr;

TEST(ProtobufLogTest, WhatProtobufComplainsOfIsARecordOfTheProgramsLog) {
  std::ostringstream text;
  auto logger = std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text));
  logger->set_formatter(MakeLogFormatter(LogFormat::kJson));
  spdlog::set_default_logger(logger);
  RouteProtobufLog();
  google::protobuf::Value value;
  value.set_string_value("\xff");
  EXPECT_FALSE(value.SerializeAsString().empty());
  EXPECT_THAT(text.str(), HasSubstr("\"level\":\"warning\",\"message\":\"protobuf\""));
  EXPECT_THAT(text.str(), HasSubstr("invalid UTF-8"));
}

}  // namespace
}  // namespace hopscope::common

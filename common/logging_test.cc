#include "common/logging.h"

#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "spdlog/sinks/ostream_sink.h"

namespace hopscope::common {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// Catches the records of the default logger.
class LoggingTest : public ::testing::Test {
 protected:
  void SetUp() override { before_ = spdlog::default_logger(); }
  void TearDown() override { spdlog::set_default_logger(before_); }

  void Use(LogFormat format, spdlog::level::level_enum level = spdlog::level::debug) {
    auto logger = std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(out_));
    logger->set_formatter(MakeLogFormatter(format));
    logger->set_level(level);
    spdlog::set_default_logger(logger);
  }

  std::vector<std::string> Lines() const {
    std::vector<std::string> lines = absl::StrSplit(out_.str(), '\n');
    EXPECT_EQ(lines.back(), "");
    lines.pop_back();
    return lines;
  }

 private:
  std::ostringstream out_;
  std::shared_ptr<spdlog::logger> before_;
};

TEST_F(LoggingTest, JsonKeepsTypesAndEscapes) {
  Use(LogFormat::kJson);
  const std::string nasty = "a\"b\\c\n\x01\xff é";
  Log(spdlog::level::warn, "unit \"failed\"\n",
      {{"job", "jobs/1"},
       {"unit", 7},
       {"share", 0.25},
       {"will_retry", true},
       {"text", nasty},
       {"rate", std::numeric_limits<double>::quiet_NaN()},
       {"large", int64_t{1} << 60}});
  ASSERT_EQ(Lines().size(), 1u);
  const nlohmann::json record = nlohmann::json::parse(Lines()[0]);
  EXPECT_EQ(record["level"], "warning");
  EXPECT_EQ(record["message"], "unit \"failed\"\n");
  EXPECT_EQ(record["job"], "jobs/1");
  EXPECT_EQ(record["unit"], 7);
  EXPECT_EQ(record["share"], 0.25);
  EXPECT_EQ(record["will_retry"], true);
  EXPECT_EQ(record["rate"], "nan");
  EXPECT_EQ(record["large"], int64_t{1} << 60);
  EXPECT_EQ(record["text"], "a\"b\\c\n\x01\xEF\xBF\xBD é");
  EXPECT_THAT(record["time"].get<std::string>(), EndsWith("Z"));
}

TEST_F(LoggingTest, TextStaysOneLine) {
  Use(LogFormat::kText);
  Log(spdlog::level::info, "job\ncreated",
      {{"job", "jobs/1"}, {"name", "two\nlines"}, {"empty", ""}});
  ASSERT_EQ(Lines().size(), 1u);
  EXPECT_THAT(Lines()[0], EndsWith(R"( info job\ncreated job=jobs/1 name="two\nlines" empty="")"));
}

TEST_F(LoggingTest, PlainSpdlogRecordsShareTheStreamAndHaveNoFields) {
  Use(LogFormat::kJson);
  Log(spdlog::level::info, "first", {{"job", "jobs/1"}});
  spdlog::info("second {}", 2);
  ASSERT_EQ(Lines().size(), 2u);
  const nlohmann::json record = nlohmann::json::parse(Lines()[1]);
  EXPECT_EQ(record["message"], "second 2");
  EXPECT_FALSE(record.contains("job"));
}

TEST_F(LoggingTest, DropsRecordsBelowTheLevel) {
  Use(LogFormat::kText, spdlog::level::warn);
  Log(spdlog::level::info, "quiet");
  Log(spdlog::level::err, "loud");
  ASSERT_EQ(Lines().size(), 1u);
  EXPECT_THAT(Lines()[0], HasSubstr("loud"));
}

TEST_F(LoggingTest, StatusFieldsCarryCodeAndMessageWithoutPayload) {
  Use(LogFormat::kText);
  Log(spdlog::level::err, "failed", {{"error", InvalidField("BAD", "f", "v", "allowed")}});
  EXPECT_THAT(Lines()[0], HasSubstr("INVALID_ARGUMENT: f: v is not allowed; allowed"));
  EXPECT_THAT(Lines()[0], Not(HasSubstr("googleapis")));
}

TEST_F(LoggingTest, ThreadsDoNotMixTheirFields) {
  Use(LogFormat::kJson);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) Log(spdlog::level::info, absl::StrCat(t), {{"thread", t}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> lines = Lines();
  EXPECT_EQ(lines.size(), 800u);
  for (const std::string& line : lines) {
    const nlohmann::json record = nlohmann::json::parse(line);
    EXPECT_EQ(record["message"], absl::StrCat(record["thread"].get<int>()));
  }
}

TEST(ParseLogOptions, KnowsItsNames) {
  const absl::StatusOr<LogOptions> options = ParseLogOptions("json", "warning");
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->format, LogFormat::kJson);
  EXPECT_EQ(options->level, spdlog::level::warn);
  EXPECT_EQ(GetErrorInfo(ParseLogOptions("xml", "info").status())->metadata().at("field"),
            "--log_format");
  EXPECT_EQ(GetErrorInfo(ParseLogOptions("text", "loud").status())->metadata().at("field"),
            "--log_level");
}

TEST(TraceId, IsTheSecondPartOfATraceparent) {
  EXPECT_EQ(TraceId("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(TraceId(""), "");
  EXPECT_EQ(TraceId("00-xyz"), "");
  EXPECT_EQ(TraceId("00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01"), "");
}

}  // namespace
}  // namespace hopscope::common

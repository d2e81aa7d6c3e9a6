#include "worker/link/worker_flags.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::link {
namespace {

using ::testing::HasSubstr;

class WorkerFlagsTest : public testing::Test {
 protected:
  void SetUp() override { unsetenv("HOPSCOPE_SERVER"); }

  // Parses a command line over flags that name a model root.
  absl::StatusOr<WorkerSettings> Parse(std::vector<std::string> arguments) {
    CLI::App app;
    flags_ = {};
    flags_.model_root = "models";
    AddWorkerFlags(&app, &flags_);
    std::reverse(arguments.begin(), arguments.end());
    app.parse(arguments);
    return CheckWorkerFlags(flags_);
  }

  void ExpectRefused(const std::vector<std::string>& arguments, const std::string& reason,
                     const std::string& field) {
    const absl::Status status = Parse(arguments).status();
    ASSERT_FALSE(status.ok()) << field;
    EXPECT_EQ(common::ErrorReason(status), reason);
    EXPECT_EQ(common::GetErrorInfo(status)->metadata().at("field"), field);
    EXPECT_THAT(std::string(status.message()), HasSubstr(field));
  }

  WorkerFlags flags_;
};

TEST_F(WorkerFlagsTest, DefaultsServeOneMachine) {
  const absl::StatusOr<WorkerSettings> settings = Parse({});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->server, "127.0.0.1:7070");
  EXPECT_EQ(settings->prefetch, absl::Milliseconds(500));
  EXPECT_EQ(settings->grace, absl::Seconds(30));
  EXPECT_EQ(flags_.device, "auto");
  EXPECT_EQ(flags_.threads, 0);
  EXPECT_EQ(flags_.metrics_listen, "");
}

TEST_F(WorkerFlagsTest, ServerComesFromTheEnvironmentUnlessGiven) {
  setenv("HOPSCOPE_SERVER", "localhost:1234", 1);
  EXPECT_EQ(Parse({})->server, "localhost:1234");
  EXPECT_EQ(Parse({"--server", "127.0.0.1:99"})->server, "127.0.0.1:99");
  unsetenv("HOPSCOPE_SERVER");
}

TEST_F(WorkerFlagsTest, PlainTextToAnotherMachineHasToBeAllowed) {
  ExpectRefused({"--server", "10.0.0.1:7070"}, "INSECURE_ADDRESS", "--server");
  ExpectRefused({"--server", "hopscope.internal:7070"}, "INSECURE_ADDRESS", "--server");
  EXPECT_TRUE(Parse({"--server", "10.0.0.1:7070", "--allow_insecure"}).ok());
  EXPECT_EQ(Parse({"--server", "[::1]:7070"})->server, "[::1]:7070");
}

TEST_F(WorkerFlagsTest, WrongValuesNameTheFlag) {
  ExpectRefused({"--server", "nowhere"}, "BAD_ADDRESS", "--server");
  ExpectRefused({"--server", "127.0.0.1:0"}, "BAD_ADDRESS", "--server");
  ExpectRefused({"--model_root", ""}, "FLAG_MISSING", "--model_root");
  ExpectRefused({"--prefetch_ms=-1"}, "BAD_FLAG", "--prefetch_ms");
  ExpectRefused({"--prefetch_ms", "600001"}, "BAD_FLAG", "--prefetch_ms");
  ExpectRefused({"--grace", "soon"}, "BAD_FLAG", "--grace");
  ExpectRefused({"--grace=-1s"}, "BAD_FLAG", "--grace");
  ExpectRefused({"--log_format", "xml"}, "BAD_FLAG", "--log_format");
}

}  // namespace
}  // namespace hopscope::link

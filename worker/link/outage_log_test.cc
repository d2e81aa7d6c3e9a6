#include "worker/link/outage_log.h"

#include "common/status.h"
#include "gtest/gtest.h"

namespace hopscope::link {
namespace {

TEST(OutageLogTest, LogsOncePerChange) {
  const common::FakeClock clock(absl::UnixEpoch());
  OutageLog log("Heartbeat", "workers/w", &clock);
  EXPECT_FALSE(log.Worked());
  EXPECT_TRUE(log.Failed(absl::UnavailableError("connection refused")));
  EXPECT_FALSE(log.Failed(absl::UnavailableError("connection refused")));
  EXPECT_FALSE(log.Failed(absl::UnavailableError("socket closed")));
  EXPECT_TRUE(log.Failed(absl::DeadlineExceededError("no answer")));
  EXPECT_FALSE(log.Failed(absl::DeadlineExceededError("no answer")));
  EXPECT_TRUE(log.Worked());
  EXPECT_FALSE(log.Worked());
  EXPECT_TRUE(log.Failed(absl::UnavailableError("connection refused")));
}

TEST(OutageLogTest, AnotherReasonIsAChangeThoughTheCodeIsTheSame) {
  const common::FakeClock clock(absl::UnixEpoch());
  OutageLog log("ReportUnit", "workers/w", &clock);
  EXPECT_TRUE(log.Failed(
      common::MakeError(absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE", "disk full")));
  EXPECT_TRUE(log.Failed(absl::UnavailableError("connection refused")));
}

}  // namespace
}  // namespace hopscope::link

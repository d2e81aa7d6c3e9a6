#include "worker/link/reporter.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/link/fake_dispatch_stub.h"

namespace hopscope::link {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Seen = FakeDispatchStub::Seen;

v1::UnitResult ResultWithScores(int values) {
  v1::UnitResult result;
  result.set_items(values);
  v1::ScoreMoments* scores = result.add_scores();
  for (int i = 0; i < values; ++i) scores->add_mean(i + 0.5);
  return result;
}

class ReporterTest : public testing::Test {
 protected:
  ReporterTest() {
    options_.worker_id = "workers/w";
    options_.max_part_bytes = 1000;
    options_.backoff = {.initial = absl::Milliseconds(1), .max = absl::Milliseconds(2)};
    Call call(absl::Seconds(1));
    v1::RegisterWorkerRequest request;
    request.set_worker_id("workers/w");
    EXPECT_TRUE(server_.RegisterWorker(request, &call).ok());
  }

  // Leases the attempts, so that the server knows them, and starts the reporter.
  void Start(const std::vector<std::string>& attempts) {
    for (const std::string& attempt : attempts) server_.AddUnit(attempt);
    v1::LeaseUnitsRequest request;
    request.set_worker_id("workers/w");
    request.set_max_units(static_cast<int>(attempts.size()));
    Call call(absl::Seconds(1));
    ASSERT_TRUE(server_.LeaseUnits(request, &call).ok());
    reporter_ = std::make_unique<Reporter>(options_, &server_, &clock_,
                                           [this](const std::string& attempt_id) {
                                             common::MutexLock lock(&mutex_);
                                             ended_.push_back(attempt_id);
                                           });
  }

  std::vector<std::string> ended() {
    common::MutexLock lock(&mutex_);
    return ended_;
  }

  void AwaitEmpty() { ASSERT_TRUE(reporter_->WaitUntilEmpty(absl::Now() + absl::Seconds(30))); }

  common::FakeClock clock_{absl::UnixEpoch()};
  FakeDispatchStub server_;
  Reporter::Options options_;
  common::Mutex mutex_;
  std::vector<std::string> ended_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Reporter> reporter_;
};

TEST_F(ReporterTest, ReportsResultsInPartsThatTheServerCanJoin) {
  Start({"a"});
  const v1::UnitResult result = ResultWithScores(1000);
  reporter_->Submit(UnitOutcome::Result({.attempt_id = "a"}, result));
  AwaitEmpty();
  const Seen seen = server_.seen();
  EXPECT_GT(seen.reports.size(), 7u);
  for (const v1::ReportUnitRequest& part : seen.reports) {
    EXPECT_EQ(part.worker_id(), "workers/w");
    EXPECT_LE(part.result_part().size(), 1000u);
  }
  EXPECT_EQ(seen.results.at("a").SerializeAsString(), result.SerializeAsString());
  EXPECT_THAT(ended(), ElementsAre("a"));
}

TEST_F(ReporterTest, DefaultPartsLeaveRoomBelowOneMebibyte) {
  options_.max_part_bytes = Reporter::Options().max_part_bytes;
  Start({"a"});
  reporter_->Submit(UnitOutcome::Result({.attempt_id = "a"}, ResultWithScores(300'000)));
  AwaitEmpty();
  const Seen seen = server_.seen();
  ASSERT_EQ(seen.reports.size(), 3u);
  for (const v1::ReportUnitRequest& part : seen.reports) EXPECT_LT(part.ByteSizeLong(), 1 << 20);
}

TEST_F(ReporterTest, ReportsFailuresAndUnitsHandedBack) {
  Start({"a", "b"});
  reporter_->Submit(UnitOutcome::Failure(
      {.attempt_id = "a"}, common::MakeError(absl::StatusCode::kFailedPrecondition, "CHECKPOINT",
                                             "the digest differs")));
  reporter_->Submit(UnitOutcome::HandBack({.attempt_id = "b"}, "drain"));
  AwaitEmpty();
  const Seen seen = server_.seen();
  EXPECT_EQ(seen.failures.at("a").reason(), "CHECKPOINT");
  EXPECT_EQ(seen.failures.at("a").message(), "the digest differs");
  EXPECT_EQ(seen.hand_backs.at("b").reason(), "drain");
  EXPECT_THAT(ended(), ElementsAre("a", "b"));
}

TEST_F(ReporterTest, TriesUntilAServerThatIsAwayIsBack) {
  Start({"a"});
  server_.Down();
  reporter_->Submit(UnitOutcome::Result({.attempt_id = "a"}, ResultWithScores(1)));
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.failed_calls >= 20; }));
  EXPECT_EQ(reporter_->backlog(), 1);
  EXPECT_TRUE(ended().empty());
  server_.Up();
  AwaitEmpty();
  EXPECT_EQ(server_.seen().results.count("a"), 1u);
}

TEST_F(ReporterTest, TriesNowWhenTheServerIsSaidToBeBack) {
  options_.backoff = {.initial = absl::Hours(1), .max = absl::Hours(1)};
  Start({"a"});
  server_.Down();
  reporter_->Submit(UnitOutcome::Result({.attempt_id = "a"}, ResultWithScores(1)));
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.failed_calls == 1; }));
  server_.Up();
  reporter_->TryNow();
  AwaitEmpty();
}

TEST_F(ReporterTest, LostAnswerIsNoSecondReport) {
  Start({"a"});
  server_.FailReports(1, absl::UnavailableError("connection reset"), /*applied=*/true);
  reporter_->Submit(UnitOutcome::Result({.attempt_id = "a"}, ResultWithScores(1)));
  AwaitEmpty();
  const Seen seen = server_.seen();
  EXPECT_EQ(seen.reports.size(), 2u);
  EXPECT_EQ(seen.results.size(), 1u);
  EXPECT_THAT(ended(), ElementsAre("a"));
}

TEST_F(ReporterTest, LostAnswerToAPartIsMadeGood) {
  Start({"a"});
  server_.FailReports(3, absl::UnavailableError("connection reset"), /*applied=*/true);
  const v1::UnitResult result = ResultWithScores(1000);
  reporter_->Submit(UnitOutcome::Result({.attempt_id = "a"}, result));
  AwaitEmpty();
  EXPECT_EQ(server_.seen().results.at("a").SerializeAsString(), result.SerializeAsString());
}

TEST_F(ReporterTest, SendsAllPartsAgainWhereTheServerHasLostSome) {
  Start({"a"});
  server_.ForgetPartsBefore(3);
  const v1::UnitResult result = ResultWithScores(1000);
  reporter_->Submit(UnitOutcome::Result({.attempt_id = "a"}, result));
  AwaitEmpty();
  EXPECT_EQ(server_.seen().results.at("a").SerializeAsString(), result.SerializeAsString());
}

TEST_F(ReporterTest, AttemptThatIsGoneIsAnEnd) {
  Start({"superseded"});
  server_.CancelAttempt("superseded");
  reporter_->Submit(UnitOutcome::Result({.attempt_id = "superseded"}, ResultWithScores(1000)));
  reporter_->Submit(UnitOutcome::Result({.attempt_id = "unknown"}, ResultWithScores(1000)));
  AwaitEmpty();
  const Seen seen = server_.seen();
  EXPECT_EQ(seen.reports.size(), 2u);
  EXPECT_EQ(seen.applied(), 0u);
  EXPECT_THAT(ended(), ElementsAre("superseded", "unknown"));
}

TEST_F(ReporterTest, ResultThatTheServerRefusesBecomesAFailure) {
  Start({"a"});
  server_.FailReports(options_.max_refusals, absl::InvalidArgumentError("too many scores"));
  reporter_->Submit(UnitOutcome::Result({.attempt_id = "a"}, ResultWithScores(1)));
  AwaitEmpty();
  const Seen seen = server_.seen();
  EXPECT_EQ(static_cast<int>(seen.reports.size()), options_.max_refusals + 1);
  EXPECT_EQ(seen.failures.at("a").reason(), "INTERNAL");
  EXPECT_THAT(seen.failures.at("a").message(), HasSubstr("too many scores"));
}

TEST_F(ReporterTest, GivesUpWhatIsRefusedEvenThenAndGoesOn) {
  Start({"a", "b"});
  server_.FailReports(2 * options_.max_refusals, absl::InternalError("a bug"));
  reporter_->Submit(UnitOutcome::Result({.attempt_id = "a"}, ResultWithScores(1)));
  ASSERT_TRUE(reporter_->WaitUntilEmpty(absl::Now() + absl::Seconds(30)));
  reporter_->Submit(UnitOutcome::Result({.attempt_id = "b"}, ResultWithScores(1)));
  AwaitEmpty();
  EXPECT_EQ(server_.seen().results.count("b"), 1u);
  EXPECT_THAT(ended(), ElementsAre("a", "b"));
}

TEST_F(ReporterTest, RefusedReportDoesNotHoldUpTheOthers) {
  Start({"a", "b"});
  server_.FailReports(1, absl::InternalError("a bug"));
  server_.Down();
  reporter_->Submit(UnitOutcome::Result({.attempt_id = "a"}, ResultWithScores(1)));
  reporter_->Submit(UnitOutcome::Result({.attempt_id = "b"}, ResultWithScores(1)));
  server_.Up();
  AwaitEmpty();
  EXPECT_THAT(ended(), ElementsAre("b", "a"));
}

TEST_F(ReporterTest, IsFullAtTheBoundsOfItsBacklog) {
  options_.max_backlog = 3;
  options_.max_backlog_bytes = 1000;
  Start({"a", "b", "c", "d"});
  server_.Down();
  reporter_->Submit(UnitOutcome::HandBack({.attempt_id = "a"}, "drain"));
  reporter_->Submit(UnitOutcome::HandBack({.attempt_id = "b"}, "drain"));
  EXPECT_FALSE(reporter_->full());
  reporter_->Submit(UnitOutcome::HandBack({.attempt_id = "c"}, "drain"));
  EXPECT_TRUE(reporter_->full());
  server_.Up();
  AwaitEmpty();
  EXPECT_FALSE(reporter_->full());
  server_.Down();
  reporter_->Submit(UnitOutcome::Result({.attempt_id = "d"}, ResultWithScores(200)));
  EXPECT_TRUE(reporter_->full());
}

TEST_F(ReporterTest, StopEndsEvenWhileTheServerIsAway) {
  options_.backoff = {.initial = absl::Hours(1), .max = absl::Hours(1)};
  Start({"a"});
  server_.Down();
  reporter_->Submit(UnitOutcome::Result({.attempt_id = "a"}, ResultWithScores(1)));
  EXPECT_FALSE(reporter_->WaitUntilEmpty(absl::Now()));
  reporter_->Stop();
  EXPECT_EQ(reporter_->backlog(), 1);
}

}  // namespace
}  // namespace hopscope::link

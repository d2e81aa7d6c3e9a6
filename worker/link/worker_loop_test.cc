#include "worker/link/worker_loop.h"

#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/link/fake_dispatch_stub.h"
#include "worker/link/puppet_engine.h"

namespace hopscope::link {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

using Seen = FakeDispatchStub::Seen;

v1::WorkUnit Unit(int64_t items) {
  v1::WorkUnit unit;
  unit.set_job("jobs/j");
  unit.set_item_count(items);
  return unit;
}

class WorkerLoopTest : public testing::Test {
 protected:
  WorkerLoopTest() {
    const Backoff::Options backoff = {.initial = absl::Milliseconds(1),
                                      .max = absl::Milliseconds(2)};
    options_.worker_id = "workers/w";
    // So that what AwaitHeld waits for is heard soon.
    server_.SetHeartbeatInterval(absl::Milliseconds(5));
    options_.grace = absl::InfiniteDuration();
    options_.leaser.patience = absl::InfiniteDuration();
    options_.session.min_spacing = absl::ZeroDuration();
    options_.leaser.min_spacing = absl::ZeroDuration();
    options_.session.backoff = backoff;
    options_.leaser.backoff = backoff;
    options_.reporter.backoff = backoff;
    // Units take no time on a clock that stands still: nothing is prefetched unless a test asks.
    options_.prefetch = absl::ZeroDuration();
  }

  ~WorkerLoopTest() override {
    if (runner_.joinable()) {
      engine_.Release(1000);
      Stop().IgnoreError();
    }
  }

  void Start() {
    engine_.Describe(&options_.description);
    metrics_ = std::make_unique<WorkerMetrics>(options_.description, &engine_, &clock_);
    loop_ = std::make_unique<WorkerLoop>(options_, &server_, &engine_, metrics_.get(), &clock_);
    runner_ = std::thread([this] { result_ = loop_->Run(); });
  }

  // Until Run has returned.
  absl::Status Join() {
    runner_.join();
    return result_;
  }

  absl::Status Stop() {
    loop_->RequestStop();
    return Join();
  }

  bool AwaitApplied(size_t count) {
    return server_.Await([count](const Seen& seen) { return seen.applied() >= count; });
  }
  bool AwaitLeased(size_t count) {
    return server_.Await([count](const Seen& seen) { return seen.leased.size() >= count; });
  }
  // Until the server has heard in a heartbeat that these are held.
  bool AwaitHeld(const std::set<std::string>& ids) {
    return server_.Await([&ids](const Seen& seen) {
      if (seen.heartbeats.empty()) return false;
      const auto& held = seen.heartbeats.back().attempt_ids();
      return std::set<std::string>(held.begin(), held.end()) == ids;
    });
  }

  common::FakeClock clock_{absl::UnixEpoch()};
  FakeDispatchStub server_;
  PuppetEngine engine_;
  WorkerLoop::Options options_;
  std::unique_ptr<WorkerMetrics> metrics_;
  std::unique_ptr<WorkerLoop> loop_;
  std::thread runner_;
  absl::Status result_;
};

TEST_F(WorkerLoopTest, ComputesAndReportsEveryUnitOnce) {
  for (int i = 0; i < 50; ++i) server_.AddUnit(absl::StrCat("a", i), Unit(i + 1));
  Start();
  ASSERT_TRUE(AwaitApplied(50));
  EXPECT_TRUE(Stop().ok());
  const Seen seen = server_.seen();
  ASSERT_EQ(seen.results.size(), 50u);
  EXPECT_EQ(seen.reports.size(), 50u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(seen.results.at(absl::StrCat("a", i)).items(), i + 1);
  EXPECT_THAT(seen.hand_backs, SizeIs(0));
}

TEST_F(WorkerLoopTest, HoldsWhatRunsAndThePrefetchedUnits) {
  options_.prefetch = absl::Milliseconds(500);
  engine_.Hold();
  for (int i = 0; i < 10; ++i) server_.AddUnit(absl::StrCat("a", i), Unit(1));
  Start();
  ASSERT_TRUE(AwaitHeld({"a0"}));  // nothing beyond it while no duration is known
  ASSERT_TRUE(engine_.AwaitRunning(1));
  clock_.Advance(absl::Milliseconds(250));
  engine_.Release();
  // Units take 250 ms: two more keep it busy for 500 ms.
  ASSERT_TRUE(AwaitHeld({"a1", "a2", "a3"}));
  EXPECT_THAT(server_.seen().leased, ElementsAre("a0", "a1", "a2", "a3"));
}

TEST_F(WorkerLoopTest, RunsUnitsSideBySideUpToTheEnginesCapacity) {
  PuppetEngine wide(3);
  wide.Hold();
  for (int i = 0; i < 5; ++i) server_.AddUnit(absl::StrCat("a", i), Unit(1));
  wide.Describe(&options_.description);
  WorkerMetrics metrics(options_.description, &wide, &clock_);
  WorkerLoop loop(options_, &server_, &wide, &metrics, &clock_);
  std::thread runner([&loop] { EXPECT_TRUE(loop.Run().ok()); });
  EXPECT_TRUE(wide.AwaitRunning(3));
  wide.Release(5);
  EXPECT_TRUE(AwaitApplied(5));
  loop.RequestStop();
  runner.join();
}

TEST_F(WorkerLoopTest, ReportsFailuresWithTheirReasonAndGoesOn) {
  engine_.FailNext(
      common::MakeError(absl::StatusCode::kFailedPrecondition, "CHECKPOINT", "the digest differs"));
  engine_.FailNext(
      common::MakeError(absl::StatusCode::kResourceExhausted, "OUT_OF_MEMORY", "2 GiB wanted"));
  engine_.FailNext(absl::UnknownError("odd"));
  engine_.FailNext(absl::CancelledError("though nobody asked"));
  for (const char* id : {"a", "b", "c", "d", "e"}) server_.AddUnit(id, Unit(1));
  Start();
  ASSERT_TRUE(AwaitApplied(5));
  const Seen seen = server_.seen();
  EXPECT_EQ(seen.failures.at("a").reason(), "CHECKPOINT");
  EXPECT_EQ(seen.failures.at("b").reason(), "OUT_OF_MEMORY");
  EXPECT_EQ(seen.failures.at("c").reason(), "INTERNAL");
  EXPECT_EQ(seen.failures.at("d").reason(), "INTERNAL");
  EXPECT_EQ(seen.results.count("e"), 1u);
}

TEST_F(WorkerLoopTest, CancelledUnitStopsWhileItRunsAndIsNotReported) {
  engine_.Hold();
  server_.AddUnit("a", Unit(1));
  Start();
  ASSERT_TRUE(AwaitHeld({"a"}));
  ASSERT_TRUE(engine_.AwaitRunning(1));
  server_.CancelAttempt("a");
  ASSERT_TRUE(engine_.AwaitRunning(0));
  server_.AddUnit("b", Unit(1));
  engine_.Release();
  ASSERT_TRUE(AwaitApplied(1));
  const Seen seen = server_.seen();
  EXPECT_THAT(seen.reports, SizeIs(1));
  EXPECT_EQ(seen.results.count("b"), 1u);
}

TEST_F(WorkerLoopTest, CancelledUnitThatWaitsNeverRuns) {
  options_.prefetch = absl::Milliseconds(500);
  engine_.Hold();
  for (const char* id : {"a", "b", "c", "d"}) server_.AddUnit(id, Unit(1));
  Start();
  ASSERT_TRUE(engine_.AwaitRunning(1));
  clock_.Advance(absl::Milliseconds(250));
  engine_.Release();
  ASSERT_TRUE(AwaitHeld({"b", "c", "d"}));
  ASSERT_TRUE(engine_.AwaitRunning(1));  // b
  server_.CancelAttempt("c");
  ASSERT_TRUE(AwaitHeld({"b", "d"}));
  engine_.Release(2);
  ASSERT_TRUE(AwaitApplied(3));
  const Seen seen = server_.seen();
  EXPECT_THAT(seen.reports, SizeIs(3));
  EXPECT_EQ(seen.results.count("c"), 0u);
}

TEST_F(WorkerLoopTest, DrainWishHandsBackWhatHasNotStartedUntilItEnds) {
  options_.prefetch = absl::Milliseconds(500);
  engine_.Hold();
  for (const char* id : {"a", "b", "c", "d"}) server_.AddUnit(id, Unit(1));
  Start();
  ASSERT_TRUE(engine_.AwaitRunning(1));
  clock_.Advance(absl::Milliseconds(250));
  engine_.Release();
  ASSERT_TRUE(AwaitHeld({"b", "c", "d"}));
  ASSERT_TRUE(engine_.AwaitRunning(1));  // b
  server_.SetDrain(true);
  ASSERT_TRUE(AwaitApplied(3));
  EXPECT_EQ(server_.seen().hand_backs.at("c").reason(), "drain");
  EXPECT_EQ(server_.seen().hand_backs.at("d").reason(), "drain");
  engine_.Release();
  ASSERT_TRUE(AwaitApplied(4));  // what runs is finished
  EXPECT_EQ(server_.seen().results.count("b"), 1u);
  EXPECT_TRUE(loop_->CheckReady().ok());

  const size_t lease_requests = server_.seen().lease_requests.size();
  server_.AddUnit("e", Unit(1));
  // Whatever makes the leaser look again, such as a server that was away.
  server_.Down();
  server_.Up();
  ASSERT_TRUE(AwaitHeld({}));
  EXPECT_EQ(server_.seen().lease_requests.size(), lease_requests);
  server_.SetDrain(false);
  engine_.Release();
  ASSERT_TRUE(AwaitApplied(5));
  EXPECT_EQ(server_.seen().results.count("e"), 1u);
}

TEST_F(WorkerLoopTest, StopFinishesWhatRunsAndHandsBackTheRest) {
  options_.prefetch = absl::Milliseconds(500);
  engine_.Hold();
  for (const char* id : {"a", "b", "c", "d"}) server_.AddUnit(id, Unit(1));
  Start();
  ASSERT_TRUE(engine_.AwaitRunning(1));
  clock_.Advance(absl::Milliseconds(250));
  engine_.Release();
  ASSERT_TRUE(AwaitHeld({"b", "c", "d"}));
  ASSERT_TRUE(engine_.AwaitRunning(1));  // b
  loop_->RequestStop();
  ASSERT_TRUE(AwaitApplied(3));
  EXPECT_EQ(server_.seen().hand_backs.at("c").reason(), "shutdown");
  EXPECT_EQ(server_.seen().hand_backs.at("d").reason(), "shutdown");
  engine_.Release();
  EXPECT_TRUE(Join().ok());
  const Seen seen = server_.seen();
  EXPECT_EQ(seen.results.count("b"), 1u);
  EXPECT_THAT(seen.leased, SizeIs(4));
  EXPECT_TRUE(seen.heartbeats.back().draining());
  EXPECT_THAT(seen.heartbeats.back().attempt_ids(), SizeIs(0));
}

TEST_F(WorkerLoopTest, StopHandsBackWhatStillRunsWhenTheGraceTimeIsOver) {
  options_.grace = absl::ZeroDuration();
  engine_.Hold();
  server_.AddUnit("a", Unit(1));
  Start();
  ASSERT_TRUE(engine_.AwaitRunning(1));
  EXPECT_TRUE(Stop().ok());
  const Seen seen = server_.seen();
  EXPECT_EQ(seen.hand_backs.at("a").reason(), "shutdown");
  EXPECT_THAT(seen.reports, SizeIs(1));
}

TEST_F(WorkerLoopTest, StopWhileIdleEndsAtOnce) {
  Start();
  ASSERT_TRUE(server_.Await(
      [](const Seen& seen) { return !seen.lease_requests.empty() && !seen.heartbeats.empty(); }));
  EXPECT_TRUE(Stop().ok());
}

TEST_F(WorkerLoopTest, StopBeforeTheServerWasEverThere) {
  server_.Down();
  Start();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.failed_calls >= 1; }));
  EXPECT_TRUE(Stop().ok());
}

TEST_F(WorkerLoopTest, StopDoesNotWaitForEverForAServerThatIsAway) {
  options_.grace = absl::ZeroDuration();
  options_.report_patience = absl::ZeroDuration();
  engine_.Hold();
  server_.AddUnit("a", Unit(1));
  Start();
  ASSERT_TRUE(engine_.AwaitRunning(1));
  server_.Down();
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(server_.seen().applied(), 0u);
}

TEST_F(WorkerLoopTest, EngineThatDoesNotStopIsAnError) {
  options_.grace = absl::ZeroDuration();
  options_.stop_patience = absl::ZeroDuration();
  engine_.Hold();
  engine_.Hang();
  server_.AddUnit("a", Unit(1));
  Start();
  ASSERT_TRUE(engine_.AwaitRunning(1));
  const absl::Status status = Stop();
  EXPECT_EQ(common::ErrorReason(status), kEngineHangs);
  // The program exits here; a test has to end the loop's threads.
  engine_.Release();
}

TEST_F(WorkerLoopTest, GoesOnComputingWhileTheServerIsAwayAndReportsLate) {
  engine_.Hold();
  server_.AddUnit("a", Unit(7));
  Start();
  ASSERT_TRUE(AwaitHeld({"a"}));
  ASSERT_TRUE(engine_.AwaitRunning(1));
  server_.Down();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.failed_calls >= 5; }));
  EXPECT_FALSE(loop_->CheckReady().ok());
  EXPECT_TRUE(loop_->CheckLive().ok());
  engine_.Release();
  ASSERT_TRUE(engine_.AwaitRunning(0));
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return !seen.reports.empty(); }));
  EXPECT_EQ(server_.seen().applied(), 0u);
  server_.AddUnit("b", Unit(8));
  server_.Up();
  engine_.Release();
  ASSERT_TRUE(AwaitApplied(2));
  EXPECT_EQ(server_.seen().results.at("a").items(), 7);
  EXPECT_EQ(server_.seen().results.at("b").items(), 8);
  EXPECT_EQ(server_.seen().registrations.size(), 1u);
}

TEST_F(WorkerLoopTest, RegistersWithARestartedServerAndGoesOn) {
  engine_.Hold();
  server_.AddUnit("a", Unit(7));
  Start();
  ASSERT_TRUE(AwaitHeld({"a"}));
  server_.Down();
  server_.Up(/*forget=*/true);
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.registrations.size() == 2; }));
  ASSERT_TRUE(AwaitHeld({"a"}));
  engine_.Release(2);
  server_.AddUnit("b", Unit(8));
  ASSERT_TRUE(AwaitApplied(2));
}

TEST_F(WorkerLoopTest, FullBacklogOfReportsStopsLeasing) {
  options_.reporter.max_backlog = 2;
  server_.FailReports(1 << 30, absl::UnavailableError("the disk is full"));
  for (int i = 0; i < 10; ++i) server_.AddUnit(absl::StrCat("a", i), Unit(1));
  Start();
  // Leases come one at a time (no prefetch), and the third is not asked for.
  ASSERT_TRUE(AwaitHeld({"a0", "a1"}));
  ASSERT_TRUE(engine_.AwaitRunning(0));
  EXPECT_THAT(server_.seen().leased, SizeIs(2));
  server_.FailReports(0, absl::OkStatus());
  ASSERT_TRUE(AwaitApplied(10));
}

TEST_F(WorkerLoopTest, RefusedVersionEndsTheRun) {
  server_.RefuseRegistration(common::MakeError(absl::StatusCode::kFailedPrecondition,
                                               "VERSION_MISMATCH", "worker 1.0.0, server 2.0.0"));
  Start();
  const absl::Status status = Join();
  EXPECT_EQ(common::ErrorReason(status), "VERSION_MISMATCH");
  EXPECT_FALSE(loop_->CheckReady().ok());
}

TEST_F(WorkerLoopTest, ServerOfAnotherVersionAfterARestartEndsTheRunThoughAUnitRuns) {
  engine_.Hold();
  server_.AddUnit("a", Unit(1));
  Start();
  ASSERT_TRUE(AwaitHeld({"a"}));
  server_.RefuseRegistration(common::MakeError(absl::StatusCode::kFailedPrecondition,
                                               "VERSION_MISMATCH", "worker 1.0.0, server 2.0.0"));
  server_.Down();
  server_.Up(/*forget=*/true);
  EXPECT_EQ(common::ErrorReason(Join()), "VERSION_MISMATCH");
  EXPECT_EQ(server_.seen().results.size(), 0u);
}

TEST_F(WorkerLoopTest, IsReadyOnceItIsRegistered) {
  server_.Down();
  common::Mutex mutex;
  int registrations = 0;
  options_.on_first_registration = [&] {
    common::MutexLock lock(&mutex);
    ++registrations;
  };
  Start();
  EXPECT_FALSE(loop_->CheckReady().ok());
  server_.Up();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return !seen.heartbeats.empty(); }));
  EXPECT_TRUE(loop_->CheckReady().ok());
  EXPECT_TRUE(loop_->CheckLive().ok());
  server_.Down();
  server_.Up(/*forget=*/true);
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.registrations.size() >= 2; }));
  EXPECT_TRUE(Stop().ok());
  EXPECT_EQ(registrations, 1);
}

TEST_F(WorkerLoopTest, IsNotLiveWhereTheDeviceIsDead) {
  Start();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return !seen.heartbeats.empty(); }));
  EXPECT_TRUE(loop_->CheckLive().ok());
  engine_.SetHealthy(false);
  EXPECT_THAT(loop_->CheckLive().message(), HasSubstr("device"));
}

TEST_F(WorkerLoopTest, IsNotLiveWhereACancelledUnitRunsOn) {
  engine_.Hold();
  engine_.Hang();
  server_.AddUnit("a", Unit(1));
  Start();
  ASSERT_TRUE(AwaitHeld({"a"}));
  ASSERT_TRUE(engine_.AwaitRunning(1));
  server_.CancelAttempt("a");
  ASSERT_TRUE(AwaitHeld({}));
  EXPECT_TRUE(loop_->CheckLive().ok());
  clock_.Advance(options_.stop_patience + absl::Seconds(1));
  EXPECT_THAT(loop_->CheckLive().message(), HasSubstr("told to stop"));
}

TEST_F(WorkerLoopTest, TellsTheServerWhatIsLoaded) {
  Start();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return !seen.lease_requests.empty(); }));
  EXPECT_THAT(server_.seen().lease_requests[0].loaded_digests(), ElementsAre("sha256:loaded"));
}

}  // namespace
}  // namespace hopscope::link

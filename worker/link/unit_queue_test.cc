#include "worker/link/unit_queue.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::link {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

google::protobuf::RepeatedPtrField<v1::UnitLease> Leases(std::initializer_list<const char*> ids) {
  google::protobuf::RepeatedPtrField<v1::UnitLease> leases;
  for (const char* id : ids) leases.Add()->set_attempt_id(id);
  return leases;
}

google::protobuf::RepeatedPtrField<std::string> Ids(std::initializer_list<const char*> ids) {
  return {ids.begin(), ids.end()};
}

std::vector<std::string> IdsOf(const std::vector<v1::UnitLease>& leases) {
  std::vector<std::string> ids;
  for (const v1::UnitLease& lease : leases) ids.push_back(lease.attempt_id());
  return ids;
}

class UnitQueueTest : public testing::Test {
 protected:
  common::FakeClock clock_{absl::UnixEpoch()};
  int changes_ = 0;
  UnitQueue queue_{&clock_, [this] { ++changes_; }};
};

TEST_F(UnitQueueTest, RunsUnitsInTheOrderOfTheirLeases) {
  EXPECT_THAT(queue_.Add(Leases({"b", "a"})), IsEmpty());
  EXPECT_THAT(queue_.Add(Leases({"c"})), IsEmpty());
  EXPECT_EQ(queue_.Take()->lease.attempt_id(), "b");
  EXPECT_EQ(queue_.Take()->lease.attempt_id(), "a");
  EXPECT_EQ(queue_.Take()->lease.attempt_id(), "c");
}

TEST_F(UnitQueueTest, AttemptIsHeldUntilItsReportHasEnded) {
  queue_.Add(Leases({"a", "b"}));
  queue_.Take();
  EXPECT_EQ(queue_.ActiveUnits(), 2);
  EXPECT_EQ(queue_.RunningUnits(), 1);
  EXPECT_EQ(queue_.EndRun("a"), UnitQueue::Stop::kNone);
  EXPECT_EQ(queue_.ActiveUnits(), 1);
  EXPECT_THAT(queue_.AttemptIds(), UnorderedElementsAre("a", "b"));
  queue_.Release("a");
  EXPECT_THAT(queue_.AttemptIds(), ElementsAre("b"));
}

TEST_F(UnitQueueTest, LeaseThatIsHeldAlreadyIsPassedOver) {
  queue_.Add(Leases({"a"}));
  EXPECT_THAT(queue_.Add(Leases({"a", "b"})), IsEmpty());
  EXPECT_EQ(queue_.ActiveUnits(), 2);
}

TEST_F(UnitQueueTest, CancelDropsQueuedAndStopsRunningUnits) {
  queue_.Add(Leases({"running", "queued", "kept"}));
  const auto running = queue_.Take();
  const int changes = changes_;
  EXPECT_THAT(queue_.Cancel(Ids({"queued", "running", "unknown"})),
              UnorderedElementsAre("queued", "running"));
  EXPECT_GT(changes_, changes);
  EXPECT_TRUE(running->cancel.cancelled());
  // Neither is renewed.
  EXPECT_THAT(queue_.AttemptIds(), ElementsAre("kept"));
  EXPECT_EQ(queue_.Take()->lease.attempt_id(), "kept");
  EXPECT_EQ(queue_.EndRun("running"), UnitQueue::Stop::kCancelled);
  EXPECT_EQ(queue_.EndRun("kept"), UnitQueue::Stop::kNone);
}

TEST_F(UnitQueueTest, CancelPassesOverWhatAwaitsItsReport) {
  queue_.Add(Leases({"a"}));
  queue_.Take();
  queue_.EndRun("a");
  EXPECT_THAT(queue_.Cancel(Ids({"a"})), IsEmpty());
  EXPECT_THAT(queue_.AttemptIds(), ElementsAre("a"));
}

TEST_F(UnitQueueTest, RepeatedCancelIsNoNews) {
  queue_.Add(Leases({"a"}));
  queue_.Take();
  EXPECT_THAT(queue_.Cancel(Ids({"a"})), ElementsAre("a"));
  EXPECT_THAT(queue_.Cancel(Ids({"a"})), IsEmpty());
}

TEST_F(UnitQueueTest, WhileNothingIsAcceptedLeasesComeBackAndStayHeldUntilReleased) {
  queue_.Add(Leases({"running", "queued"}));
  queue_.Take();
  EXPECT_THAT(IdsOf(queue_.StopAccepting()), ElementsAre("queued"));
  EXPECT_THAT(IdsOf(queue_.Add(Leases({"late"}))), ElementsAre("late"));
  EXPECT_EQ(queue_.ActiveUnits(), 1);
  EXPECT_THAT(queue_.AttemptIds(), UnorderedElementsAre("running", "queued", "late"));
  queue_.Release("queued");
  queue_.Release("late");
  EXPECT_THAT(queue_.AttemptIds(), ElementsAre("running"));
  queue_.StartAccepting();
  EXPECT_THAT(queue_.Add(Leases({"new"})), IsEmpty());
  EXPECT_EQ(queue_.Take()->lease.attempt_id(), "new");
}

TEST_F(UnitQueueTest, TakeWaitsForALeaseAndEndsWithTheQueue) {
  std::vector<std::string> taken;
  std::thread runner([&] {
    while (const auto unit = queue_.Take()) {
      taken.push_back(unit->lease.attempt_id());
      queue_.EndRun(unit->lease.attempt_id());
      queue_.Release(unit->lease.attempt_id());
      queue_.Close();
    }
  });
  queue_.Add(Leases({"a"}));
  runner.join();
  EXPECT_THAT(taken, ElementsAre("a"));
}

TEST_F(UnitQueueTest, StopRunsStopsEveryRunForTheShutdown) {
  queue_.Add(Leases({"a", "b", "c"}));
  const auto a = queue_.Take();
  const auto b = queue_.Take();
  queue_.Cancel(Ids({"b"}));
  queue_.StopRuns();
  EXPECT_TRUE(a->cancel.cancelled());
  EXPECT_EQ(queue_.EndRun("a"), UnitQueue::Stop::kShutdown);
  // Cancelled before: nobody wants it back.
  EXPECT_EQ(queue_.EndRun("b"), UnitQueue::Stop::kCancelled);
}

TEST_F(UnitQueueTest, CancelAfterStopRunsWins) {
  queue_.Add(Leases({"a"}));
  queue_.Take();
  queue_.StopRuns();
  EXPECT_THAT(queue_.Cancel(Ids({"a"})), ElementsAre("a"));
  EXPECT_EQ(queue_.EndRun("a"), UnitQueue::Stop::kCancelled);
}

TEST_F(UnitQueueTest, TellsHowLongAStoppedRunGoesOn) {
  queue_.Add(Leases({"a", "b"}));
  queue_.Take();
  queue_.Take();
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(queue_.LongestStopping(), absl::ZeroDuration());
  queue_.Cancel(Ids({"a"}));
  clock_.Advance(absl::Seconds(3));
  queue_.Cancel(Ids({"b"}));
  clock_.Advance(absl::Seconds(4));
  EXPECT_EQ(queue_.LongestStopping(), absl::Seconds(7));
  queue_.EndRun("a");
  EXPECT_EQ(queue_.LongestStopping(), absl::Seconds(4));
  queue_.EndRun("b");
  EXPECT_EQ(queue_.LongestStopping(), absl::ZeroDuration());
}

TEST_F(UnitQueueTest, WaitsForTheRunsToEnd) {
  EXPECT_TRUE(queue_.WaitUntilNothingRuns(absl::InfinitePast()));
  queue_.Add(Leases({"a"}));
  queue_.Take();
  EXPECT_FALSE(queue_.WaitUntilNothingRuns(absl::InfinitePast()));
  std::thread runner([&] { queue_.EndRun("a"); });
  EXPECT_TRUE(queue_.WaitUntilNothingRuns(absl::InfiniteFuture()));
  runner.join();
}

}  // namespace
}  // namespace hopscope::link

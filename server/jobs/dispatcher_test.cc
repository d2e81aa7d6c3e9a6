#include "server/jobs/dispatcher.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/testing/fake_worker.h"
#include "server/jobs/testing/jobs_fixture.h"

namespace hopscope::jobs {
namespace {

using testing::AbleWorker;
using testing::Bits;
using testing::ComputeUnit;
using ::testing::ElementsAre;
using testing::FakeWorker;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobsTest;
using testing::kLongPadding;
using testing::ScoredSpec;
using ::testing::SizeIs;
using testing::SmallSpec;
using Response = v1::ReportUnitResponse;

class DispatcherTest : public JobsTest {
 protected:
  // Moves the clock past a lease in steps in which live workers send heartbeats.
  void LetLeasesRunOut(const std::vector<FakeWorker*>& live = {}) {
    for (int step = 0; step < 4; ++step) {
      clock_.Advance(kLease / 2);
      for (FakeWorker* worker : live) ASSERT_TRUE(worker->Heartbeat().ok());
      ASSERT_TRUE(dispatcher_->Tick().ok());
    }
  }
};

template <typename Kind>
std::vector<v1::EvalEvent> OfKind(const std::vector<v1::EvalEvent>& events, Kind kind) {
  std::vector<v1::EvalEvent> found;
  for (const v1::EvalEvent& event : events) {
    if (event.kind_case() == kind) found.push_back(event);
  }
  return found;
}

TEST_F(DispatcherTest, AJobRunsFromItsFirstUnitToItsLast) {
  v1::EvalJobSpec spec = ScoredSpec();
  spec.mutable_tasks(0)->add_hops(2);
  const std::string job = Create(spec);
  EXPECT_EQ(Get(job).state(), v1::EvalJob::STATE_PENDING);
  EXPECT_EQ(Get(job).waiting_reason(), "no worker is connected");

  FakeWorker worker(dispatcher_.get(), "workers/a");
  clock_.Advance(absl::Seconds(1));
  const v1::UnitLease first = worker.LeaseOne();
  EXPECT_EQ(first.attempt(), 1);
  EXPECT_EQ(first.unit().job(), job);
  EXPECT_EQ(first.unit().first_item(), 0);
  EXPECT_EQ(first.unit().sequences().task(), "number");
  EXPECT_EQ(first.unit().sequences().hops(), 1);
  EXPECT_EQ(first.unit().sequences().added_tokens(), kLongPadding);
  EXPECT_EQ(first.unit().sequences().window().target(), 8);
  EXPECT_EQ(first.unit().sequences().padding(), "random");
  EXPECT_EQ(first.unit().sequences().seed(), 42);
  EXPECT_EQ(first.unit().sequences().split(), v1::SPLIT_EVALUATION);
  EXPECT_EQ(first.unit().checkpoint().name(), "number");
  EXPECT_THAT(first.unit().checkpoint().digest(), HasSubstr("sha256:"));
  EXPECT_THAT(first.unit().scorers(), SizeIs(2));
  EXPECT_EQ(first.unit().dtype(), v1::DTYPE_FLOAT32);
  EXPECT_GT(first.unit().flops(), 0);
  EXPECT_EQ(Get(job).state(), v1::EvalJob::STATE_RUNNING);

  clock_.Advance(absl::Seconds(1));
  ASSERT_EQ(worker.Complete(first).value(), Response::DISPOSITION_APPLIED);
  const int units = 1 + worker.RunAll();

  const v1::EvalJob done = Get(job);
  EXPECT_EQ(done.state(), v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_EQ(done.totals().units(), units);
  EXPECT_GT(done.totals().units(), 4) << "the test needs several units a cell";
  EXPECT_EQ(done.totals().units_completed(), units);
  EXPECT_EQ(done.totals().cells_completed(), 2);
  EXPECT_EQ(done.totals().items_completed(), 200);
  EXPECT_EQ(done.totals().items_failed(), 0);
  EXPECT_EQ(done.start_time().seconds(), done.create_time().seconds() + 1);
  EXPECT_EQ(done.end_time().seconds(), done.create_time().seconds() + 2);
  EXPECT_THAT(done.worker_kinds(), ElementsAre("cpu/test/DTYPE_FLOAT32"));
  EXPECT_EQ(done.waiting_reason(), "");

  const v1::ListEvalResultsResponse results = Results(job);
  ASSERT_THAT(results.cells(), SizeIs(2));
  EXPECT_EQ(results.cells(0).cell().hops(), 1);
  EXPECT_EQ(results.cells(1).cell().hops(), 2);
  EXPECT_EQ(results.cells(0).items(), 100);
  EXPECT_EQ(results.cells(0).state(), v1::CellResult::STATE_COMPLETED);
  EXPECT_DOUBLE_EQ(results.cells(0).accuracy(), results.cells(0).correct() / 100.0);
  ASSERT_THAT(results.heads(), SizeIs(6));  // three metrics a cell
  EXPECT_EQ(results.heads(0).metric(), "positional");
  EXPECT_EQ(results.heads(0).items(0), 100);

  const std::vector<v1::EvalEvent> events = Events(job);
  std::vector<v1::EvalEvent::KindCase> kinds;
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].sequence(), static_cast<int64_t>(i) + 1);
    EXPECT_EQ(events[i].job(), job);
    kinds.push_back(events[i].kind_case());
  }
  EXPECT_THAT(kinds, ElementsAre(v1::EvalEvent::kJobStateChanged, v1::EvalEvent::kJobStateChanged,
                                 v1::EvalEvent::kCellCompleted, v1::EvalEvent::kCellCompleted,
                                 v1::EvalEvent::kJobStateChanged, v1::EvalEvent::kJobFinished));
  EXPECT_EQ(done.last_sequence(), 6);
  EXPECT_EQ(Bits(events[2].cell_completed().result()), Bits(results.cells(0)));
  EXPECT_EQ(events[5].job_finished().totals().units_completed(), units);
}

TEST_F(DispatcherTest, UnitsOfACellCoverItsItemsOnce) {
  Create(ScoredSpec());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  const std::vector<v1::UnitLease> leases = worker.Lease(100);
  int64_t next = 0;
  for (size_t i = 0; i < leases.size(); ++i) {
    EXPECT_EQ(leases[i].unit().ref().unit_index(), static_cast<int64_t>(i));
    EXPECT_EQ(leases[i].unit().first_item(), next);
    next += leases[i].unit().item_count();
    if (i + 1 < leases.size()) {
      EXPECT_EQ(leases[i].unit().item_count(), leases[0].unit().item_count());
    }
  }
  EXPECT_EQ(next, 100);
  EXPECT_THAT(worker.Lease(1), IsEmpty());
}

TEST_F(DispatcherTest, ResultsAreTheSameBitsWithOneWorkerOrThreeAndLostOnes) {
  v1::EvalJobSpec spec = ScoredSpec();
  spec.mutable_tasks(0)->set_samples(250);
  const std::string alone = Create(spec);
  {
    FakeWorker worker(dispatcher_.get(), "workers/alone");
    worker.RunAll(1);
  }
  const std::string shared = Create(spec);
  FakeWorker a(dispatcher_.get(), "workers/a");
  FakeWorker b(dispatcher_.get(), "workers/b");
  FakeWorker lost(dispatcher_.get(), "workers/lost");
  // Reports come last to first, some in parts, and one worker takes its units to the grave.
  std::vector<v1::UnitLease> of_a = a.Lease(4);
  const std::vector<v1::UnitLease> of_lost = lost.Lease(3);
  ASSERT_THAT(of_lost, SizeIs(3));
  std::vector<v1::UnitLease> of_b = b.Lease(100);
  for (auto lease = of_b.rbegin(); lease != of_b.rend(); ++lease) {
    ASSERT_EQ(b.Report(*lease, ComputeUnit(lease->unit()), 3).value(),
              Response::DISPOSITION_APPLIED);
  }
  for (auto lease = of_a.rbegin(); lease != of_a.rend(); ++lease) {
    ASSERT_EQ(a.Complete(*lease).value(), Response::DISPOSITION_APPLIED);
  }
  LetLeasesRunOut({&a, &b});
  EXPECT_EQ(a.RunAll(2), 3);
  ASSERT_EQ(Get(shared).state(), v1::EvalJob::STATE_SUCCEEDED);
  ASSERT_EQ(Get(alone).state(), v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_GT(Get(alone).totals().units(), 10);
  EXPECT_EQ(ResultBits(alone), ResultBits(shared));
}

TEST_F(DispatcherTest, AResultInPartsIsAppliedOnceItIsComplete) {
  const std::string job = Create(ScoredSpec());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  const v1::UnitLease lease = worker.LeaseOne();
  const std::string bytes = ComputeUnit(lease.unit()).SerializeAsString();
  const std::string front = bytes.substr(0, 10);
  const std::string back = bytes.substr(10);
  EXPECT_EQ(worker.ReportPart(lease, back, 1, 2).value(), Response::DISPOSITION_PARTIAL);
  EXPECT_EQ(worker.ReportPart(lease, back, 1, 2).value(), Response::DISPOSITION_PARTIAL);
  EXPECT_EQ(worker.ReportPart(lease, front, 0, 3).status().code(),
            absl::StatusCode::kInvalidArgument);
  Reopen();
  worker.Use(dispatcher_.get());
  EXPECT_EQ(worker.ReportPart(lease, front, 0, 2).value(), Response::DISPOSITION_APPLIED);
  EXPECT_EQ(worker.ReportPart(lease, front, 0, 2).value(), Response::DISPOSITION_DUPLICATE);
  EXPECT_EQ(Get(job).totals().units_completed(), 1);
}

TEST_F(DispatcherTest, AReportThatComesTwiceChangesNothing) {
  const std::string job = Create(SmallSpec());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  const v1::UnitLease lease = worker.LeaseOne();
  ASSERT_EQ(worker.Complete(lease).value(), Response::DISPOSITION_APPLIED);
  const v1::EvalJob before = Get(job);
  EXPECT_EQ(worker.Complete(lease).value(), Response::DISPOSITION_DUPLICATE);
  EXPECT_EQ(worker.Fail(lease, "INTERNAL").value(), Response::DISPOSITION_DUPLICATE);
  EXPECT_EQ(worker.HandBack(lease).value(), Response::DISPOSITION_DUPLICATE);
  EXPECT_EQ(Bits(Get(job)), Bits(before));
}

TEST_F(DispatcherTest, ALateResultIsTakenWhileTheUnitWaits) {
  const std::string job = Create(SmallSpec());
  FakeWorker slow(dispatcher_.get(), "workers/slow");
  const v1::UnitLease lease = slow.LeaseOne();
  LetLeasesRunOut();
  EXPECT_EQ(slow.Complete(lease).value(), Response::DISPOSITION_APPLIED);
  EXPECT_EQ(slow.Complete(lease).value(), Response::DISPOSITION_DUPLICATE);
  EXPECT_EQ(Get(job).totals().units_completed(), 1);
  FakeWorker other(dispatcher_.get(), "workers/other");
  EXPECT_EQ(other.LeaseOne().unit().ref().unit_index(), 1);
}

TEST_F(DispatcherTest, ALateResultIsSupersededOnceAnotherWorkerHasTheUnit) {
  const std::string job = Create(SmallSpec());
  FakeWorker slow(dispatcher_.get(), "workers/slow");
  const v1::UnitLease late = slow.LeaseOne();
  LetLeasesRunOut();
  FakeWorker other(dispatcher_.get(), "workers/other");
  const v1::UnitLease lease = other.LeaseOne();
  EXPECT_EQ(lease.attempt(), 2);
  EXPECT_EQ(lease.unit().ref().unit_index(), 0);
  EXPECT_EQ(slow.Complete(late).value(), Response::DISPOSITION_SUPERSEDED);
  EXPECT_EQ(other.Complete(lease).value(), Response::DISPOSITION_APPLIED);
  EXPECT_EQ(slow.Complete(late).value(), Response::DISPOSITION_SUPERSEDED);
  EXPECT_EQ(Get(job).totals().units_completed(), 1);
  EXPECT_EQ(Get(job).totals().items_completed(), lease.unit().item_count());
}

TEST_F(DispatcherTest, ALateFailureOrHandBackOfALostLeaseChangesNothing) {
  Create(SmallSpec());
  FakeWorker slow(dispatcher_.get(), "workers/slow");
  const v1::UnitLease late = slow.LeaseOne();
  LetLeasesRunOut();
  EXPECT_EQ(slow.Fail(late, "INTERNAL").value(), Response::DISPOSITION_SUPERSEDED);
  EXPECT_EQ(slow.HandBack(late).value(), Response::DISPOSITION_SUPERSEDED);
  FakeWorker other(dispatcher_.get(), "workers/other");
  EXPECT_EQ(other.LeaseOne().attempt(), 2);
}

TEST_F(DispatcherTest, ReportsThatFitNoAttemptAreRefused) {
  const std::string job = Create(SmallSpec());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  FakeWorker other(dispatcher_.get(), "workers/b");
  const v1::UnitLease lease = worker.LeaseOne();
  EXPECT_EQ(other.Complete(lease).status().code(), absl::StatusCode::kFailedPrecondition);
  v1::UnitLease forged = lease;
  forged.set_attempt_id(
      absl::StrCat(lease.attempt_id().substr(0, lease.attempt_id().rfind('/')), "/1"));
  EXPECT_EQ(worker.Complete(forged).status().code(), absl::StatusCode::kNotFound);
  forged.set_attempt_id("nonsense");
  EXPECT_EQ(worker.Complete(forged).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(worker.ReportPart(lease, "", 2, 2).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(worker.ReportPart(lease, "", 0, 0).status().code(), absl::StatusCode::kInvalidArgument);
  v1::ReportUnitRequest empty;
  empty.set_worker_id(worker.id());
  empty.set_attempt_id(lease.attempt_id());
  empty.set_part_count(1);
  EXPECT_EQ(dispatcher_->ReportUnit(empty).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Get(job).totals().units_completed(), 0);
  EXPECT_EQ(worker.Complete(lease).value(), Response::DISPOSITION_APPLIED);
}

TEST_F(DispatcherTest, HeartbeatsKeepTheLeasesThatTheyName) {
  Create(SmallSpec());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  const v1::UnitLease kept = worker.LeaseOne();
  const v1::UnitLease forgotten = worker.LeaseOne();
  for (int i = 0; i < 6; ++i) {
    clock_.Advance(kLease / 2);
    const auto answer = worker.Heartbeat({kept});
    ASSERT_TRUE(answer.ok());
    EXPECT_FALSE(answer->urgent);
    EXPECT_THAT(answer->response.cancelled_attempt_ids(), IsEmpty());
    ASSERT_TRUE(dispatcher_->Tick().ok());
  }
  // The one that it never named went back; the worker itself is not lost.
  const auto answer = worker.Heartbeat({kept, forgotten});
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->urgent);
  EXPECT_THAT(answer->response.cancelled_attempt_ids(), ElementsAre(forgotten.attempt_id()));
  EXPECT_EQ(worker.Complete(kept).value(), Response::DISPOSITION_APPLIED);
  EXPECT_EQ(worker.LeaseOne().attempt(), 2);
}

TEST_F(DispatcherTest, ALostWorkerIsToldToRegisterAgainAndItsJobsSaySo) {
  const std::string job = Create(SmallSpec());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  FakeWorker other(dispatcher_.get(), "workers/b");
  ASSERT_THAT(worker.Lease(2), SizeIs(2));
  LetLeasesRunOut({&other});
  EXPECT_EQ(worker.Heartbeat().status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(worker.TryLease(1).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(worker.Register().ok());
  EXPECT_TRUE(worker.Heartbeat().ok());
  EXPECT_TRUE(other.Heartbeat().ok());

  const auto lost = OfKind(Events(job), v1::EvalEvent::kWorkerLost);
  ASSERT_THAT(lost, SizeIs(1));
  EXPECT_EQ(lost[0].worker_lost().worker(), "workers/a");
  EXPECT_THAT(lost[0].worker_lost().description(), HasSubstr("testhost"));
  EXPECT_THAT(lost[0].worker_lost().units(), SizeIs(2));
  const auto failed = OfKind(Events(job), v1::EvalEvent::kUnitFailed);
  ASSERT_THAT(failed, SizeIs(2));
  EXPECT_EQ(failed[0].unit_failed().failure().reason(), "WORKER_LOST");
  EXPECT_TRUE(failed[0].unit_failed().will_retry());
}

TEST_F(DispatcherTest, LeasesSurviveTheTimeInWhichNoServerRan) {
  Create(SmallSpec());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  const v1::UnitLease lease = worker.LeaseOne();
  clock_.Advance(absl::Hours(1));
  Reopen();
  worker.Use(dispatcher_.get());
  ASSERT_TRUE(dispatcher_->Tick().ok());
  const auto answer = worker.Heartbeat({lease});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->response.cancelled_attempt_ids(), IsEmpty());
  EXPECT_EQ(worker.Complete(lease).value(), Response::DISPOSITION_APPLIED);
}

TEST_F(DispatcherTest, AttemptsAreBoundedAndTheLastReasonIsKept) {
  v1::EvalJobSpec spec = SmallSpec();
  spec.mutable_tasks(0)->add_hops(2);
  const std::string job = Create(spec);
  FakeWorker worker(dispatcher_.get(), "workers/a");
  for (int attempt = 1; attempt <= 4; ++attempt) {
    // Other units come first; the worker keeps them until the end.
    std::vector<v1::UnitLease> leases = worker.Lease(100);
    const auto failing = std::find_if(leases.begin(), leases.end(), [](const auto& lease) {
      return lease.unit().ref().cell_index() == 0 && lease.unit().ref().unit_index() == 0;
    });
    ASSERT_NE(failing, leases.end()) << attempt;
    EXPECT_EQ(failing->attempt(), attempt);
    ASSERT_EQ(worker
                  .Fail(*failing, attempt == 4 ? "OUT_OF_MEMORY" : "INTERNAL",
                        absl::StrCat("attempt ", attempt))
                  .value(),
              Response::DISPOSITION_APPLIED);
    for (const v1::UnitLease& lease : leases) {
      if (lease.unit().ref().cell_index() == 1) {
        ASSERT_EQ(worker.Complete(lease).value(), Response::DISPOSITION_APPLIED);
      }
    }
  }
  const v1::EvalJob done = Get(job);
  EXPECT_EQ(done.state(), v1::EvalJob::STATE_PARTIALLY_SUCCEEDED);
  EXPECT_EQ(done.totals().units_failed(), 1);
  EXPECT_EQ(done.totals().cells_failed(), 1);
  EXPECT_EQ(done.totals().cells_completed(), 1);
  const v1::ListEvalResultsResponse results = Results(job);
  ASSERT_THAT(results.cells(), SizeIs(2));
  EXPECT_EQ(results.cells(0).state(), v1::CellResult::STATE_FAILED);
  EXPECT_EQ(results.cells(0).failure().reason(), "OUT_OF_MEMORY");
  EXPECT_EQ(results.cells(0).failure().message(), "attempt 4");
  EXPECT_EQ(results.cells(1).state(), v1::CellResult::STATE_COMPLETED);
  const auto failed = OfKind(Events(job), v1::EvalEvent::kUnitFailed);
  ASSERT_THAT(failed, SizeIs(4));
  EXPECT_TRUE(failed[2].unit_failed().will_retry());
  EXPECT_FALSE(failed[3].unit_failed().will_retry());
}

TEST_F(DispatcherTest, AFailedCellStopsItsOtherUnits) {
  const std::string job = Create(SmallSpec());
  dispatcher_options_.max_attempts = 1;
  Reopen();
  FakeWorker worker(dispatcher_.get(), "workers/a");
  FakeWorker other(dispatcher_.get(), "workers/b");
  const v1::UnitLease failing = worker.LeaseOne();
  const v1::UnitLease running = other.LeaseOne();
  int news = 0;
  const auto subscription = signals_.OnWorker(other.id(), [&news] { ++news; });
  ASSERT_EQ(worker.Fail(failing, "CHECKPOINT", "the digest differs").value(),
            Response::DISPOSITION_APPLIED);
  EXPECT_EQ(news, 1);
  const auto answer = other.Heartbeat({running});
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->response.cancelled_attempt_ids(), ElementsAre(running.attempt_id()));
  EXPECT_EQ(other.Complete(running).value(), Response::DISPOSITION_SUPERSEDED);
  EXPECT_THAT(other.Lease(10), IsEmpty());
  const v1::EvalJob done = Get(job);
  EXPECT_EQ(done.state(), v1::EvalJob::STATE_FAILED);
  EXPECT_EQ(done.failure().reason(), "CHECKPOINT");
  EXPECT_THAT(done.failure().message(), HasSubstr("the digest differs"));
}

TEST_F(DispatcherTest, AFailedCellLeavesOtherCellsAlone) {
  v1::EvalJobSpec spec = SmallSpec();
  spec.mutable_tasks(0)->add_hops(2);
  const std::string job = Create(spec);
  dispatcher_options_.max_attempts = 1;
  Reopen();
  FakeWorker worker(dispatcher_.get(), "workers/a");
  FakeWorker other(dispatcher_.get(), "workers/b");
  const v1::UnitLease failing = worker.LeaseOne();
  const std::vector<v1::UnitLease> running = other.Lease(100);  // the rest of both cells
  std::vector<std::string> of_failed_cell;
  for (const v1::UnitLease& lease : running) {
    if (lease.unit().ref().cell_index() == 0) of_failed_cell.push_back(lease.attempt_id());
  }
  ASSERT_THAT(of_failed_cell, SizeIs(1));
  ASSERT_TRUE(worker.Fail(failing, "INTERNAL").ok());
  EXPECT_EQ(Get(job).state(), v1::EvalJob::STATE_RUNNING);
  const auto answer = other.Heartbeat(running);
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->response.cancelled_attempt_ids(), ElementsAre(of_failed_cell[0]));
  for (const v1::UnitLease& lease : running) {
    EXPECT_EQ(other.Complete(lease).value(), lease.unit().ref().cell_index() == 0
                                                 ? Response::DISPOSITION_SUPERSEDED
                                                 : Response::DISPOSITION_APPLIED);
  }
  EXPECT_EQ(Get(job).state(), v1::EvalJob::STATE_PARTIALLY_SUCCEEDED);
}

TEST_F(DispatcherTest, AFailedCellTakesItsUnitsOutOfTheQueue) {
  v1::EvalJobSpec spec = SmallSpec();
  spec.mutable_tasks(0)->add_hops(2);
  spec.mutable_tasks(0)->set_samples(500);
  const std::string job = Create(spec);
  const int64_t units_per_cell = Get(job).totals().units() / 2;
  dispatcher_options_.max_attempts = 1;
  Reopen();
  FakeWorker worker(dispatcher_.get(), "workers/a");
  const std::vector<v1::UnitLease> leases = worker.Lease(2);
  ASSERT_TRUE(worker.HandBack(leases[1]).ok());  // waits again, with a row of its own
  ASSERT_TRUE(worker.Fail(leases[0], "INTERNAL").ok());
  const auto counts = dispatcher_->CountStates();
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ(counts->queued_units, units_per_cell);
  EXPECT_EQ(counts->leased_units, 0);
  EXPECT_EQ(worker.RunAll(), units_per_cell);
}

TEST_F(DispatcherTest, AMillionUnitsAreAcceptedAtOnceAndCostNothingUntilTheyAreLeased) {
  v1::EvalJobSpec spec = ScoredSpec();
  spec.mutable_tasks(0)->set_samples(10'000'000);
  for (const int hops : {2, 3, 4}) spec.mutable_tasks(0)->add_hops(hops);
  const std::string job = Create(spec);
  EXPECT_GT(Get(job).totals().units(), 1'000'000);
  EXPECT_EQ(Get(job).totals().items(), 40'000'000);
  EXPECT_LT(std::filesystem::file_size(folder_.Path("state/hopscope.db")) +
                std::filesystem::file_size(folder_.Path("state/hopscope.db-wal")),
            1'000'000u);
  FakeWorker worker(dispatcher_.get(), "workers/a");
  for (const v1::UnitLease& lease : worker.Lease(20)) {
    ASSERT_EQ(worker.Complete(lease).value(), Response::DISPOSITION_APPLIED);
  }
  ASSERT_TRUE(Cancel(job).ok());
  EXPECT_EQ(Get(job).totals().units_completed(), 20);
  EXPECT_THAT(worker.Lease(1), IsEmpty());
}

TEST_F(DispatcherTest, PreemptedAndHandedBackUnitsCostNoAttempt) {
  const std::string job = Create(SmallSpec());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  for (int i = 0; i < 10; ++i) {
    const v1::UnitLease lease = worker.LeaseOne();
    ASSERT_EQ(lease.unit().ref().unit_index(), 0);
    EXPECT_EQ(lease.attempt(), i + 1);
    ASSERT_EQ(worker.HandBack(lease).value(), Response::DISPOSITION_APPLIED);
  }
  FakeWorker other(dispatcher_.get(), "workers/b");
  for (int i = 0; i < 5; ++i) {
    FakeWorker preempted(dispatcher_.get(), absl::StrCat("workers/p", i));
    const v1::UnitLease lease = preempted.LeaseOne();
    ASSERT_EQ(lease.unit().ref().unit_index(), 0);
    ASSERT_EQ(preempted.Fail(lease, "PREEMPTED").value(), Response::DISPOSITION_APPLIED);
  }
  other.RunAll();
  EXPECT_EQ(Get(job).state(), v1::EvalJob::STATE_SUCCEEDED);
}

TEST_F(DispatcherTest, UnknownFailureReasonsBecomeInternal) {
  const std::string job = Create(SmallSpec());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  ASSERT_TRUE(worker.Fail(worker.LeaseOne(), "SOMETHING_NEW", "oh").ok());
  const auto failed = OfKind(Events(job), v1::EvalEvent::kUnitFailed);
  ASSERT_THAT(failed, SizeIs(1));
  EXPECT_EQ(failed[0].unit_failed().failure().reason(), "INTERNAL");
  EXPECT_THAT(failed[0].unit_failed().failure().message(), HasSubstr("SOMETHING_NEW"));
}

TEST_F(DispatcherTest, AnImplausibleResultFailsTheAttempt) {
  const std::string job = Create(ScoredSpec());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  const v1::UnitLease lease = worker.LeaseOne();
  v1::UnitResult result = ComputeUnit(lease.unit());
  result.set_items(result.items() + 1);
  ASSERT_EQ(worker.Report(lease, result).value(), Response::DISPOSITION_APPLIED);
  const auto failed = OfKind(Events(job), v1::EvalEvent::kUnitFailed);
  ASSERT_THAT(failed, SizeIs(1));
  EXPECT_EQ(failed[0].unit_failed().failure().reason(), "INTERNAL");
  EXPECT_EQ(Get(job).totals().units_completed(), 0);
  ASSERT_EQ(worker.ReportPart(worker.LeaseOne(), "\xff\xff", 0, 1).value(),
            Response::DISPOSITION_APPLIED);
  EXPECT_THAT(OfKind(Events(job), v1::EvalEvent::kUnitFailed), SizeIs(2));
}

TEST_F(DispatcherTest, FailFastEndsTheJobWithItsFirstFailedCell) {
  v1::EvalJobSpec spec = SmallSpec();
  spec.mutable_tasks(0)->add_hops(2);
  spec.set_fail_fast(true);
  dispatcher_options_.max_attempts = 1;
  Reopen();
  const std::string job = Create(spec);
  FakeWorker worker(dispatcher_.get(), "workers/a");
  ASSERT_TRUE(worker.Fail(worker.LeaseOne(), "TIMEOUT", "too slow").ok());
  const v1::EvalJob done = Get(job);
  EXPECT_EQ(done.state(), v1::EvalJob::STATE_FAILED);
  EXPECT_EQ(done.failure().reason(), "TIMEOUT");
  EXPECT_THAT(worker.Lease(10), IsEmpty());
  const auto events = Events(job);
  EXPECT_TRUE(events.back().has_job_finished());
  EXPECT_EQ(events.back().job_finished().failure().reason(), "TIMEOUT");
}

TEST_F(DispatcherTest, ItemsThatFailNumericallyAreCountedAndNothingElse) {
  const std::string job = Create(ScoredSpec());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  for (const v1::UnitLease& lease : worker.Lease(100)) {
    ASSERT_EQ(worker.Report(lease, ComputeUnit(lease.unit(), "cpu/test", {0, 1, 50})).value(),
              Response::DISPOSITION_APPLIED);
  }
  const v1::EvalJob done = Get(job);
  EXPECT_EQ(done.state(), v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_EQ(done.totals().items_completed(), 100);
  EXPECT_EQ(done.totals().items_failed(), 3);
  const v1::ListEvalResultsResponse results = Results(job);
  EXPECT_EQ(results.cells(0).items(), 97);
  EXPECT_EQ(results.cells(0).items_failed(), 3);
  EXPECT_EQ(results.heads(0).items(0), 97);
}

TEST_F(DispatcherTest, ACellWithoutAnyItemLeftFails) {
  const std::string job = Create(ScoredSpec());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  std::vector<int64_t> all(100);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  for (const v1::UnitLease& lease : worker.Lease(100)) {
    ASSERT_TRUE(worker.Report(lease, ComputeUnit(lease.unit(), "cpu/test", all)).ok());
  }
  EXPECT_EQ(Get(job).state(), v1::EvalJob::STATE_FAILED);
  const v1::ListEvalResultsResponse results = Results(job);
  EXPECT_EQ(results.cells(0).state(), v1::CellResult::STATE_FAILED);
  EXPECT_EQ(results.cells(0).failure().reason(), "NUMERIC");
  EXPECT_EQ(results.cells(0).items_failed(), 100);
  EXPECT_THAT(results.heads(), IsEmpty());
}

TEST_F(DispatcherTest, AJobPastItsDeadlineFails) {
  v1::EvalJobSpec spec = SmallSpec();
  spec.set_deadline_s(3600);
  const std::string job = Create(spec);
  FakeWorker worker(dispatcher_.get(), "workers/a");
  const v1::UnitLease lease = worker.LeaseOne();
  clock_.Advance(absl::Seconds(3599));
  ASSERT_TRUE(dispatcher_->Tick().ok());
  EXPECT_EQ(Get(job).state(), v1::EvalJob::STATE_RUNNING);
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(dispatcher_->Tick().ok());
  EXPECT_EQ(Get(job).state(), v1::EvalJob::STATE_FAILED);
  EXPECT_EQ(Get(job).failure().reason(), "DEADLINE");
  EXPECT_EQ(worker.Complete(lease).value(), Response::DISPOSITION_SUPERSEDED);
}

TEST_F(DispatcherTest, CancellingStopsQueuedUnitsAtOnceAndRunningOnesByHeartbeat) {
  const std::string job = Create(SmallSpec());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  const v1::UnitLease done = worker.LeaseOne();
  ASSERT_TRUE(worker.Complete(done).ok());
  const v1::UnitLease running = worker.LeaseOne();
  int news = 0;
  const auto subscription = signals_.OnWorker(worker.id(), [&news] { ++news; });
  const auto cancelled = Cancel(job);
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->state(), v1::EvalJob::STATE_CANCELLED);
  EXPECT_EQ(news, 1);
  EXPECT_THAT(worker.Lease(10), IsEmpty());
  const auto answer = worker.Heartbeat({running});
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->urgent);
  EXPECT_THAT(answer->response.cancelled_attempt_ids(), ElementsAre(running.attempt_id()));
  EXPECT_EQ(worker.Complete(running).value(), Response::DISPOSITION_SUPERSEDED);
  // Again: the same job, unchanged.
  EXPECT_EQ(Bits(*Cancel(job)), Bits(Get(job)));
  EXPECT_EQ(Get(job).totals().units_completed(), 1);
  const auto events = Events(job);
  EXPECT_TRUE(events.back().has_job_finished());
  EXPECT_EQ(events.back().job_finished().state(), v1::EvalJob::STATE_CANCELLED);
}

TEST_F(DispatcherTest, CancellingAFinishedJobIsRefused) {
  const std::string job = Create(SmallSpec());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  worker.RunAll();
  const auto cancelled = Cancel(job);
  EXPECT_EQ(cancelled.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(common::ErrorReason(cancelled.status()), "JOB_ENDED");
}

TEST_F(DispatcherTest, AnotherMajorVersionIsRefusedWithBoth) {
  v1::WorkerDescription description = AbleWorker();
  description.mutable_version()->set_minor(description.version().minor() + 5);
  v1::RegisterWorkerRequest request;
  request.set_worker_id("workers/x");
  *request.mutable_description() = description;
  EXPECT_TRUE(dispatcher_->RegisterWorker(request).ok());
  request.mutable_description()->mutable_version()->set_major(77);
  const auto refused = dispatcher_->RegisterWorker(request);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("77."));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr(absl::StrCat(AbleWorker().version().major(), ".")));
  request.set_worker_id("nobody");
  EXPECT_EQ(dispatcher_->RegisterWorker(request).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(DispatcherTest, ADrainWishReachesTheWorkerAndStopsItsLeases) {
  Create(SmallSpec());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  const v1::UnitLease lease = worker.LeaseOne();
  int news = 0;
  const auto subscription = signals_.OnWorker(worker.id(), [&news] { ++news; });
  ASSERT_TRUE(dispatcher_->SetDrainWish(worker.id(), true).ok());
  EXPECT_EQ(news, 1);
  EXPECT_THAT(worker.Lease(1), IsEmpty());
  auto answer = worker.Heartbeat({lease});
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->response.drain());
  EXPECT_TRUE(answer->urgent);
  answer = worker.Heartbeat({lease}, /*draining=*/false, /*known_drain=*/true);
  EXPECT_FALSE(answer->urgent);
  ASSERT_TRUE(dispatcher_->SetDrainWish(worker.id(), false).ok());
  answer = worker.Heartbeat({lease}, /*draining=*/false, /*known_drain=*/true);
  EXPECT_FALSE(answer->response.drain());
  EXPECT_TRUE(answer->urgent);
  EXPECT_THAT(worker.Lease(1), SizeIs(1));
  EXPECT_EQ(dispatcher_->SetDrainWish("workers/nobody", true).code(), absl::StatusCode::kNotFound);
  // A worker that stops by itself leases nothing either.
  ASSERT_TRUE(worker.Heartbeat({lease}, /*draining=*/true).ok());
  Create(SmallSpec());
  EXPECT_THAT(worker.Lease(1), IsEmpty());
}

TEST_F(DispatcherTest, AReopenedStoreGoesOnWhereItWas) {
  v1::EvalJobSpec spec = ScoredSpec();
  spec.mutable_tasks(0)->add_hops(2);
  const std::string untouched = Create(spec);
  FakeWorker(dispatcher_.get(), "workers/first").RunAll();
  const std::string job = Create(spec);
  int units = 0;
  for (int i = 0;; ++i) {
    FakeWorker worker(dispatcher_.get(), absl::StrCat("workers/w", i));
    const std::vector<v1::UnitLease> leases = worker.Lease(2);
    if (leases.empty()) break;
    Reopen();
    worker.Use(dispatcher_.get());
    for (auto lease = leases.rbegin(); lease != leases.rend(); ++lease) {
      ASSERT_EQ(worker.Complete(*lease).value(), Response::DISPOSITION_APPLIED);
      ++units;
      Reopen();
      worker.Use(dispatcher_.get());
    }
  }
  EXPECT_EQ(Get(job).state(), v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_EQ(Get(job).totals().units(), units);
  EXPECT_EQ(ResultBits(job), ResultBits(untouched));
}

TEST_F(DispatcherTest, LiveEventsGoToThoseWhoListenAtMostOnceASecond) {
  v1::EvalJobSpec spec = ScoredSpec();
  spec.mutable_tasks(0)->set_samples(400);
  const std::string job = Create(spec);
  FakeWorker worker(dispatcher_.get(), "workers/a");
  ASSERT_TRUE(worker.Complete(worker.LeaseOne()).ok());  // nobody listens yet

  std::vector<v1::EvalEvent> live;
  int durable = 0;
  const auto subscription = signals_.OnJob(job, [&](const v1::EvalEvent* event) {
    if (event == nullptr) {
      ++durable;
    } else {
      live.push_back(*event);
    }
  });
  int64_t items = 0;
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(absl::Milliseconds(250));
    const v1::UnitLease lease = worker.LeaseOne();
    items += lease.unit().item_count();
    ASSERT_TRUE(worker.Complete(lease).ok());
  }
  const auto started = OfKind(live, v1::EvalEvent::kUnitStarted);
  EXPECT_THAT(started, SizeIs(10));
  EXPECT_EQ(started[0].job(), job);
  EXPECT_EQ(started[0].unit_started().worker(), "workers/a");
  const auto progress = OfKind(live, v1::EvalEvent::kCellProgress);
  ASSERT_THAT(progress, SizeIs(3));  // after 0.25, 1.25 and 2.25 s
  const v1::CellProgress& last = progress[2].cell_progress();
  EXPECT_EQ(last.items_total(), 400);
  EXPECT_EQ(last.items_done(), last.job_items_done());
  const double rate = static_cast<double>(last.job_items_done()) / 2.25;
  EXPECT_NEAR(last.items_per_second(), rate, 1e-9);
  EXPECT_EQ(progress[2].sequence(), 0);
  EXPECT_EQ(durable, 0) << "nothing durable happened";
  // None of it is stored.
  for (const v1::EvalEvent& event : Events(job)) {
    EXPECT_FALSE(event.has_unit_started() || event.has_cell_progress());
  }
}

TEST_F(DispatcherTest, UnusableRequestsAreRefused) {
  FakeWorker worker(dispatcher_.get(), "workers/a");
  EXPECT_EQ(worker.TryLease(0).status().code(), absl::StatusCode::kInvalidArgument);
  v1::HeartbeatRequest unknown;
  unknown.set_worker_id("workers/never-seen");
  EXPECT_EQ(dispatcher_->Heartbeat(unknown).status().code(), absl::StatusCode::kNotFound);
  // An attempt that cannot be is one that the worker should drop.
  v1::HeartbeatRequest odd;
  odd.set_worker_id("workers/a");
  odd.add_attempt_ids("nonsense");
  const auto answer = dispatcher_->Heartbeat(odd);
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->response.cancelled_attempt_ids(), ElementsAre("nonsense"));
}

TEST_F(DispatcherTest, CountsFollowTheStates) {
  const std::string job = Create(SmallSpec());
  const int64_t units = Get(job).totals().units();
  FakeWorker worker(dispatcher_.get(), "workers/a");
  auto counts = dispatcher_->CountStates();
  ASSERT_TRUE(counts.ok());
  EXPECT_THAT(counts->jobs, ElementsAre(std::pair(v1::EvalJob::STATE_PENDING, int64_t{1})));
  EXPECT_EQ(counts->queued_units, units);
  ASSERT_THAT(counts->workers, SizeIs(1));
  EXPECT_EQ(counts->workers[0].device, "cpu");
  EXPECT_EQ(counts->workers[0].state, v1::Worker::STATE_ACTIVE);
  worker.LeaseOne();
  counts = dispatcher_->CountStates();
  EXPECT_EQ(counts->queued_units, units - 1);
  EXPECT_EQ(counts->leased_units, 1);
  ASSERT_TRUE(Cancel(job).ok());
  counts = dispatcher_->CountStates();
  EXPECT_EQ(counts->queued_units, 0);
  EXPECT_EQ(counts->leased_units, 0);
  EXPECT_THAT(counts->jobs, ElementsAre(std::pair(v1::EvalJob::STATE_CANCELLED, int64_t{1})));
}

}  // namespace
}  // namespace hopscope::jobs

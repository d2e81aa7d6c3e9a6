// What the dispatcher and the job service make of a store that fails.
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/testing/failing_store.h"
#include "server/jobs/testing/fake_worker.h"
#include "server/jobs/testing/jobs_fixture.h"

namespace hopscope::jobs {
namespace {

using ::testing::ElementsAre;
using testing::FailingStore;
using testing::FakeWorker;
using ::testing::IsEmpty;
using testing::JobsTest;
using ::testing::SizeIs;
using testing::SmallSpec;
using Response = v1::ReportUnitResponse;

class FaultsTest : public JobsTest {
 protected:
  FaultsTest() : failing_(store_.get()) {
    service_ = std::make_unique<JobService>(service_options_, &failing_, models_.get(), &signals_,
                                            &clock_);
    dispatcher_ = std::make_unique<Dispatcher>(dispatcher_options_, &failing_, &signals_, &clock_);
  }

  FailingStore failing_;
};

TEST_F(FaultsTest, EveryCallSaysThatTheStoreIsUnavailable) {
  const std::string job = Create(SmallSpec());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  const v1::UnitLease lease = worker.LeaseOne();
  failing_.SetFault(FailingStore::Fault::kBefore);
  int news = 0;
  const auto on_job = signals_.OnJob(job, [&news](const v1::EvalEvent*) { ++news; });
  const auto on_work = signals_.OnWork([&news] { ++news; });
  v1::GetEvalJobRequest get;
  get.set_name(job);
  for (const absl::Status& status :
       {TryCreate(SmallSpec()).status(), Cancel(job).status(), service_->GetEvalJob(get).status(),
        worker.Register(), worker.TryLease(1).status(), worker.Heartbeat({lease}).status(),
        worker.Complete(lease).status(), dispatcher_->Tick(),
        dispatcher_->CountStates().status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(common::ErrorReason(status), "STORE_UNAVAILABLE");
  }
  EXPECT_EQ(news, 0) << "nothing happened, so nothing is told";
  failing_.SetFault(FailingStore::Fault::kNone);
  EXPECT_EQ(worker.Complete(lease).value(), Response::DISPOSITION_APPLIED);
}

TEST_F(FaultsTest, LeasesOutliveAnOutage) {
  const std::string job = Create(SmallSpec());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  clock_.Advance(kLease);
  ASSERT_TRUE(worker.Heartbeat().ok());
  ASSERT_TRUE(dispatcher_->Tick().ok());
  const v1::UnitLease lease = worker.LeaseOne();
  failing_.SetFault(FailingStore::Fault::kBefore);
  for (int i = 0; i < 20; ++i) {
    clock_.Advance(kLease / 4);
    EXPECT_FALSE(worker.Heartbeat({lease}).ok());
    EXPECT_FALSE(dispatcher_->Tick().ok());
  }
  failing_.SetFault(FailingStore::Fault::kNone);
  clock_.Advance(kLease / 4);
  ASSERT_TRUE(dispatcher_->Tick().ok());
  const auto answer = worker.Heartbeat({lease});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->response.cancelled_attempt_ids(), IsEmpty());
  EXPECT_EQ(worker.Complete(lease).value(), Response::DISPOSITION_APPLIED);
  // And no longer than that.
  worker.LeaseOne();
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(kLease / 4);
    ASSERT_TRUE(dispatcher_->Tick().ok());
  }
  EXPECT_FALSE(worker.Heartbeat().ok());
}

// A full disk fails what writes, and a Tick with nothing to end writes nothing.
TEST_F(FaultsTest, AnOutageThatOnlyHeartbeatsMeetEndsNoLease) {
  Create(SmallSpec());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  clock_.Advance(kLease);
  ASSERT_TRUE(worker.Heartbeat().ok());
  ASSERT_TRUE(dispatcher_->Tick().ok());
  const v1::UnitLease lease = worker.LeaseOne();
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(kLease / 4);
    failing_.SetFault(FailingStore::Fault::kBefore);
    EXPECT_TRUE(absl::IsUnavailable(worker.Heartbeat({lease}).status()));
    failing_.SetFault(FailingStore::Fault::kNone);
    ASSERT_TRUE(dispatcher_->Tick().ok());
  }
  clock_.Advance(kLease / 2);
  ASSERT_TRUE(dispatcher_->Tick().ok()) << "past the lease's end, before the worker tries again";
  const auto answer = worker.Heartbeat({lease});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->response.cancelled_attempt_ids(), IsEmpty());
  EXPECT_EQ(worker.Complete(lease).value(), Response::DISPOSITION_APPLIED);
}

TEST_F(FaultsTest, ARequestWhoseAnswerWasLostMayBeRepeated) {
  failing_.SetFault(FailingStore::Fault::kAfter);
  EXPECT_EQ(TryCreate(SmallSpec(), "id").status().code(), absl::StatusCode::kUnavailable);
  failing_.SetFault(FailingStore::Fault::kNone);
  const std::string job = Create(SmallSpec(), "id");
  EXPECT_THAT(service_->ListEvalJobs({})->jobs(), SizeIs(1));

  FakeWorker worker(dispatcher_.get(), "workers/a");
  const v1::UnitLease lease = worker.LeaseOne();
  failing_.SetFault(FailingStore::Fault::kAfter);
  EXPECT_EQ(worker.Register().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(worker.Heartbeat({lease}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(worker.Complete(lease).status().code(), absl::StatusCode::kUnavailable);
  failing_.SetFault(FailingStore::Fault::kNone);
  EXPECT_TRUE(worker.Register().ok());
  EXPECT_EQ(worker.Complete(lease).value(), Response::DISPOSITION_DUPLICATE);
  EXPECT_EQ(Get(job).totals().units_completed(), 1);

  failing_.SetFault(FailingStore::Fault::kAfter);
  EXPECT_EQ(Cancel(job).status().code(), absl::StatusCode::kUnavailable);
  failing_.SetFault(FailingStore::Fault::kNone);
  EXPECT_EQ(Cancel(job)->state(), v1::EvalJob::STATE_CANCELLED);
}

// Its units were leased to a worker that does not know: they come back with the lease's end.
TEST_F(FaultsTest, ALostLeaseAnswerCostsTimeAndNothingElse) {
  v1::EvalJobSpec spec = SmallSpec();
  spec.mutable_tasks(0)->set_samples(1);
  const std::string job = Create(spec);
  FakeWorker worker(dispatcher_.get(), "workers/a");
  failing_.SetFault(FailingStore::Fault::kAfter);
  EXPECT_FALSE(worker.TryLease(1).ok());
  failing_.SetFault(FailingStore::Fault::kNone);
  EXPECT_THAT(worker.Lease(1), IsEmpty());
  for (int i = 0; i < 8; ++i) {
    clock_.Advance(kLease / 4);
    ASSERT_TRUE(worker.Heartbeat().ok());
    ASSERT_TRUE(dispatcher_->Tick().ok());
  }
  EXPECT_EQ(worker.LeaseOne().attempt(), 2);
}

}  // namespace
}  // namespace hopscope::jobs

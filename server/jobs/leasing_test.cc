#include "server/jobs/leasing.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/testing/fake_worker.h"
#include "server/jobs/testing/jobs_fixture.h"

namespace hopscope::jobs {
namespace {

using testing::AbleWorker;
using testing::ComputeUnit;
using ::testing::ElementsAre;
using testing::FakeWorker;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobsTest;
using ::testing::SizeIs;
using testing::SmallSpec;
using Response = v1::ReportUnitResponse;

class LeasingTest : public JobsTest {
 protected:
  std::string CreateFor(const std::string& tenant, int priority, int64_t samples = 100) {
    v1::EvalJobSpec spec = SmallSpec();
    spec.set_tenant(tenant);
    spec.set_priority(priority);
    spec.mutable_tasks(0)->set_samples(samples);
    clock_.Advance(absl::Seconds(1));
    return Create(spec);
  }

  // Of which jobs a worker gets its units.
  static std::vector<std::string> JobsOf(const std::vector<v1::UnitLease>& leases) {
    std::vector<std::string> jobs;
    for (const v1::UnitLease& lease : leases) jobs.push_back(lease.unit().job());
    return jobs;
  }

  std::string DigestOf(const std::string& checkpoint) { return *models_->Digest(checkpoint); }
};

TEST_F(LeasingTest, HigherPrioritiesComeFirstThenOlderJobs) {
  const std::string low = CreateFor("t", -5);
  const std::string old = CreateFor("t", 0);
  const std::string young = CreateFor("t", 0);
  const std::string high = CreateFor("t", 50);
  const int64_t units = Get(low).totals().units();
  FakeWorker worker(dispatcher_.get(), "workers/a");
  std::vector<std::string> expected;
  for (const std::string& job : {high, old, young, low}) {
    expected.insert(expected.end(), units, job);
  }
  EXPECT_EQ(JobsOf(worker.Lease(250)), expected);
}

TEST_F(LeasingTest, TenantsOfOnePriorityShareAlike) {
  const std::string first = CreateFor("a", 0, 1000);
  const std::string second = CreateFor("b", 0, 1000);
  const std::string third = CreateFor("c", 0, 1000);
  const auto count = [](const std::vector<v1::UnitLease>& leases) {
    std::map<std::string, int> counts;
    for (const v1::UnitLease& lease : leases) ++counts[lease.unit().job()];
    return counts;
  };
  // One call after another, and within one call.
  FakeWorker one_by_one(dispatcher_.get(), "workers/a");
  std::vector<v1::UnitLease> leases;
  for (int i = 0; i < 6; ++i) leases.push_back(one_by_one.LeaseOne());
  EXPECT_THAT(count(leases),
              ElementsAre(std::pair(first, 2), std::pair(second, 2), std::pair(third, 2)));
  FakeWorker at_once(dispatcher_.get(), "workers/b");
  EXPECT_THAT(count(at_once.Lease(9)),
              ElementsAre(std::pair(first, 3), std::pair(second, 3), std::pair(third, 3)));
  // Who got less before gets more now.
  for (const v1::UnitLease& lease : leases) {
    if (lease.unit().job() == second) {
      ASSERT_TRUE(one_by_one.Complete(lease).ok());
    }
  }
  EXPECT_THAT(JobsOf(at_once.Lease(2)), ElementsAre(second, second));
}

TEST_F(LeasingTest, AWorkerGetsOnlyWhatItCanCompute) {
  v1::EvalJobSpec spec = SmallSpec();
  spec.set_dtype(v1::DTYPE_BFLOAT16);
  const std::string other_dtype = Create(spec);
  spec = testing::ScoredSpec();
  const std::string scored = Create(spec);
  spec = SmallSpec();
  v1::TaskSpec* letter = spec.add_tasks();
  *letter = spec.tasks(0);
  letter->set_task("letter");
  letter->set_checkpoints(0, "letter");
  const std::string two_tasks = Create(spec);

  v1::WorkerDescription description = AbleWorker();
  description.clear_tasks();
  description.add_tasks("letter");
  FakeWorker letters_only(dispatcher_.get(), "workers/letter", description);
  for (const v1::UnitLease& lease : letters_only.Lease(100)) {
    EXPECT_EQ(lease.unit().job(), two_tasks);
    EXPECT_EQ(lease.unit().sequences().task(), "letter");
    EXPECT_EQ(lease.unit().ref().cell_index(), 1);
  }
  EXPECT_GT(Get(two_tasks).totals().units(), 1);
  EXPECT_THAT(Get(scored).waiting_reason(), HasSubstr("it does not know task number"));

  description = AbleWorker();
  description.clear_scorers();
  description.add_scorers("accuracy");
  FakeWorker accuracy_only(dispatcher_.get(), "workers/accuracy", description);
  for (const v1::UnitLease& lease : accuracy_only.Lease(100)) {
    EXPECT_EQ(lease.unit().job(), two_tasks);
    EXPECT_EQ(lease.unit().sequences().task(), "number");
  }
  description = AbleWorker();
  description.clear_model_families();
  description.add_model_families("llama");
  EXPECT_THAT(FakeWorker(dispatcher_.get(), "workers/llama", description).Lease(100), IsEmpty());
  description = AbleWorker();
  description.set_memory_bytes(100);
  EXPECT_THAT(FakeWorker(dispatcher_.get(), "workers/small", description).Lease(100), IsEmpty());

  FakeWorker able(dispatcher_.get(), "workers/able");
  able.RunAll();
  EXPECT_EQ(Get(scored).state(), v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_EQ(Get(other_dtype).state(), v1::EvalJob::STATE_PENDING);
  EXPECT_THAT(Get(other_dtype).waiting_reason(), HasSubstr("it does not compute in bfloat16"));
}

TEST_F(LeasingTest, UnitsOfALoadedCheckpointComeFirstWithinAJob) {
  v1::EvalJobSpec spec = SmallSpec();
  spec.mutable_tasks(0)->set_checkpoints(0, "series/*");
  spec.mutable_tasks(0)->add_hops(2);
  const std::string job = Create(spec);
  FakeWorker worker(dispatcher_.get(), "workers/a");
  std::vector<std::string> checkpoints;
  const std::vector<v1::UnitLease> leases =
      worker.Lease(250, {DigestOf("series/step-3"), DigestOf("number"), DigestOf("series/step-2")});
  for (const v1::UnitLease& lease : leases) {
    if (checkpoints.empty() || checkpoints.back() != lease.unit().checkpoint().name()) {
      checkpoints.push_back(lease.unit().checkpoint().name());
    }
  }
  EXPECT_THAT(checkpoints, ElementsAre("series/step-3", "series/step-2", "series/step-1"));
  EXPECT_EQ(static_cast<int64_t>(leases.size()), Get(job).totals().units());
}

TEST_F(LeasingTest, ALoadedCheckpointDoesNotLetAYoungerJobOvertake) {
  const std::string old = CreateFor("t", 0);
  v1::EvalJobSpec spec = SmallSpec();
  spec.set_tenant("t");
  spec.mutable_tasks(0)->set_checkpoints(0, "series/step-1");
  Create(spec);
  FakeWorker worker(dispatcher_.get(), "workers/a");
  EXPECT_THAT(JobsOf(worker.Lease(1, {DigestOf("series/step-1")})), ElementsAre(old));
}

TEST_F(LeasingTest, AJobIsPinnedToTheKindOfItsFirstResult) {
  const std::string job = CreateFor("t", 0, 300);
  FakeWorker cpu(dispatcher_.get(), "workers/cpu", AbleWorker("cpu/1"));
  FakeWorker gpu(dispatcher_.get(), "workers/gpu", AbleWorker("gpu/1"));
  const v1::UnitLease of_cpu = cpu.LeaseOne();
  const v1::UnitLease of_gpu = gpu.LeaseOne();
  int news = 0;
  const auto subscription = signals_.OnWorker(cpu.id(), [&news] { ++news; });
  ASSERT_EQ(gpu.Complete(of_gpu).value(), Response::DISPOSITION_APPLIED);
  // What the other kind has is taken from it, and it gets no more.
  EXPECT_EQ(news, 1);
  const auto answer = cpu.Heartbeat({of_cpu});
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->response.cancelled_attempt_ids(), ElementsAre(of_cpu.attempt_id()));
  EXPECT_EQ(cpu.Complete(of_cpu).value(), Response::DISPOSITION_SUPERSEDED);
  EXPECT_THAT(cpu.Lease(10), IsEmpty());
  // That cost the unit no attempt.
  gpu.RunAll();
  const v1::EvalJob done = Get(job);
  EXPECT_EQ(done.state(), v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_THAT(done.worker_kinds(), ElementsAre("gpu/1/DTYPE_FLOAT32"));
  for (const v1::EvalEvent& event : Events(job)) EXPECT_FALSE(event.has_unit_failed());
}

TEST_F(LeasingTest, APinnedJobWithoutSuchAWorkerSaysSo) {
  const std::string job = CreateFor("t", 0, 300);
  FakeWorker gpu(dispatcher_.get(), "workers/gpu", AbleWorker("gpu/1"));
  ASSERT_TRUE(gpu.Complete(gpu.LeaseOne()).ok());
  ASSERT_TRUE(gpu.Heartbeat({}, /*draining=*/true).ok());
  FakeWorker cpu(dispatcher_.get(), "workers/cpu", AbleWorker("cpu/1"));
  EXPECT_THAT(cpu.Lease(1), IsEmpty());
  EXPECT_THAT(Get(job).waiting_reason(), HasSubstr("the job began on kind gpu/1"));
}

TEST_F(LeasingTest, ALateResultOfAnotherKindIsNotTaken) {
  const std::string job = CreateFor("t", 0, 300);
  FakeWorker cpu(dispatcher_.get(), "workers/cpu", AbleWorker("cpu/1"));
  const v1::UnitLease late = cpu.LeaseOne();
  for (int i = 0; i < 4; ++i) {
    clock_.Advance(kLease / 2);
    ASSERT_TRUE(dispatcher_->Tick().ok());
  }
  FakeWorker gpu(dispatcher_.get(), "workers/gpu", AbleWorker("gpu/1"));
  const std::vector<v1::UnitLease> leases = gpu.Lease(2);
  ASSERT_THAT(leases, SizeIs(2));
  ASSERT_EQ(leases[0].unit().ref().unit_index(), 0);
  ASSERT_TRUE(gpu.Complete(leases[1]).ok());
  ASSERT_TRUE(gpu.HandBack(leases[0]).ok());  // the unit waits again
  EXPECT_EQ(cpu.Complete(late).value(), Response::DISPOSITION_SUPERSEDED);
  EXPECT_EQ(Get(job).totals().units_completed(), 1);
}

TEST_F(LeasingTest, AResultOfAnotherKindThanItsWorkerUsuallyMakesFailsItsAttempt) {
  const std::string job = CreateFor("t", 0, 300);
  FakeWorker worker(dispatcher_.get(), "workers/a", AbleWorker("cpu/1"));
  ASSERT_TRUE(worker.Complete(worker.LeaseOne()).ok());
  const v1::UnitLease lease = worker.LeaseOne();
  ASSERT_TRUE(worker.Report(lease, ComputeUnit(lease.unit(), "cpu/1/other")).ok());
  EXPECT_EQ(Get(job).totals().units_completed(), 1);
  const std::vector<v1::EvalEvent> events = Events(job);
  ASSERT_TRUE(events.back().has_unit_failed());
  EXPECT_EQ(events.back().unit_failed().failure().reason(), "INTERNAL");
}

TEST_F(LeasingTest, MixedWorkersShareAJobThatAllowsIt) {
  v1::EvalJobSpec spec = SmallSpec();
  spec.set_mixed_workers(true);
  const std::string job = Create(spec);
  FakeWorker cpu(dispatcher_.get(), "workers/cpu", AbleWorker("cpu/1"));
  FakeWorker gpu(dispatcher_.get(), "workers/gpu", AbleWorker("gpu/1"));
  ASSERT_TRUE(gpu.Complete(gpu.LeaseOne()).ok());
  ASSERT_GT(cpu.RunAll(), 0);
  EXPECT_EQ(Get(job).state(), v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_THAT(Get(job).worker_kinds(), ElementsAre("gpu/1/DTYPE_FLOAT32", "cpu/1/DTYPE_FLOAT32"));
}

TEST_F(LeasingTest, AUnitThatAWorkerFailedGoesToAnother) {
  const std::string job = CreateFor("t", 0);
  FakeWorker broken(dispatcher_.get(), "workers/broken");
  FakeWorker sound(dispatcher_.get(), "workers/sound");
  // The broken one fails whatever it gets, and asks for more at once.
  int failed = 0;
  for (;;) {
    const std::vector<v1::UnitLease> leases = broken.Lease(1);
    if (leases.empty()) break;
    ASSERT_TRUE(broken.Fail(leases[0], "CHECKPOINT", "digest mismatch").ok());
    ASSERT_LT(++failed, 100);
  }
  EXPECT_EQ(failed, Get(job).totals().units()) << "each unit once";
  EXPECT_EQ(sound.RunAll(), failed);
  EXPECT_EQ(Get(job).state(), v1::EvalJob::STATE_SUCCEEDED);
}

TEST_F(LeasingTest, AUnitComesBackToAWorkerThatFailedItWhereThereIsNoOther) {
  const std::string job = CreateFor("t", 0);
  FakeWorker worker(dispatcher_.get(), "workers/a");
  FakeWorker useless(dispatcher_.get(), "workers/useless", [] {
    v1::WorkerDescription description = AbleWorker();
    description.clear_tasks();
    return description;
  }());
  FakeWorker drained(dispatcher_.get(), "workers/drained");
  ASSERT_TRUE(drained.Heartbeat({}, /*draining=*/true).ok());
  std::vector<v1::UnitLease> leases = worker.Lease(100);
  for (const v1::UnitLease& lease : leases) ASSERT_TRUE(worker.Fail(lease, "INTERNAL").ok());
  EXPECT_EQ(worker.RunAll(), static_cast<int>(leases.size()));
  EXPECT_EQ(Get(job).state(), v1::EvalJob::STATE_SUCCEEDED);
}

TEST_F(LeasingTest, AUnitThatEveryWorkerFailedGoesToAnyOfThem) {
  CreateFor("t", 0, 1);
  FakeWorker a(dispatcher_.get(), "workers/a");
  FakeWorker b(dispatcher_.get(), "workers/b");
  ASSERT_TRUE(a.Fail(a.LeaseOne(), "INTERNAL").ok());
  EXPECT_THAT(a.Lease(1), IsEmpty());
  ASSERT_TRUE(b.Fail(b.LeaseOne(), "INTERNAL").ok());
  EXPECT_EQ(a.LeaseOne().attempt(), 3);
}

TEST_F(LeasingTest, WaitingUnitsComeBeforeNewOnes) {
  CreateFor("t", 0, 300);
  FakeWorker worker(dispatcher_.get(), "workers/a");
  const std::vector<v1::UnitLease> leases = worker.Lease(2);
  ASSERT_THAT(leases, SizeIs(2));
  ASSERT_TRUE(worker.HandBack(leases[1]).ok());
  ASSERT_TRUE(worker.HandBack(leases[0]).ok());
  const std::vector<v1::UnitLease> again = worker.Lease(3);
  ASSERT_THAT(again, SizeIs(3));
  EXPECT_EQ(again[0].unit().ref().unit_index(), 0);
  EXPECT_EQ(again[0].attempt(), 2);
  EXPECT_EQ(again[1].unit().ref().unit_index(), 1);
  EXPECT_EQ(again[2].unit().ref().unit_index(), 2);
  EXPECT_EQ(again[2].attempt(), 1);
}

TEST_F(LeasingTest, AnAttemptIsObservedFromLeaseToEnd) {
  struct Recorder : JobObserver {
    void OnUnitLeased(absl::Duration wait) override {
      log.push_back(absl::StrCat("leased after ", absl::FormatDuration(wait)));
    }
    void OnAttemptEnded(absl::string_view outcome, absl::Duration duration) override {
      log.push_back(absl::StrCat("attempt ", outcome, " in ", absl::FormatDuration(duration)));
    }
    void OnUnitEnded(absl::string_view outcome) override {
      log.push_back(absl::StrCat("unit ", outcome));
    }
    void OnRetry(absl::string_view reason) override {
      log.push_back(absl::StrCat("retry ", reason));
    }
    void OnLeaseExpired() override { log.push_back("expired"); }
    void OnItemsScored(absl::string_view task, int32_t hops, int32_t added_tokens, int64_t items,
                       int64_t correct) override {
      log.push_back(absl::StrCat(task, " ", hops, " ", added_tokens, " ", items, " ",
                                 correct <= items ? "ok" : "?"));
    }
    std::vector<std::string> log;
  } recorder;
  dispatcher_options_.observer = &recorder;
  Reopen();
  CreateFor("t", 0, 1);
  FakeWorker worker(dispatcher_.get(), "workers/a");
  clock_.Advance(absl::Seconds(2));
  v1::UnitLease lease = worker.LeaseOne();
  clock_.Advance(absl::Seconds(3));
  ASSERT_TRUE(worker.Fail(lease, "TIMEOUT").ok());
  clock_.Advance(absl::Seconds(4));
  lease = worker.LeaseOne();
  for (int i = 0; i < 2; ++i) {
    clock_.Advance(kLease);
    ASSERT_TRUE(dispatcher_->Tick().ok());
  }
  ASSERT_TRUE(worker.Register().ok());
  lease = worker.LeaseOne();
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(worker.Complete(lease).ok());
  ASSERT_EQ(worker.Complete(lease).value(), Response::DISPOSITION_DUPLICATE);
  EXPECT_THAT(
      recorder.log,
      ElementsAre("leased after 2s", "attempt failed in 3s", "retry TIMEOUT", "leased after 4s",
                  "expired", "attempt lost in 30s", "retry WORKER_LOST", "leased after 30s",
                  "attempt completed in 1s", "unit completed", "number 1 5000 1 ok"));
}

}  // namespace
}  // namespace hopscope::jobs

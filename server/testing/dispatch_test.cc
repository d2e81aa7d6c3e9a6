// DispatchService over a real channel: workers that lease, wait, are told news, and report.
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/grpc_status.h"
#include "common/status.h"
#include "gtest/gtest.h"
#include "server/testing/server_fixture.h"

namespace hopscope::server::testing {
namespace {

using common::ErrorReason;

constexpr absl::Duration kLong = absl::Hours(1);  // the server caps it

class DispatchTest : public ServerTest {
 protected:
  void SetUp() override { StartServer(); }
};

TEST_F(DispatchTest, AWorkerComputesAWholeJob) {
  const std::string job = Create(SpecWithCells(8));
  StubWorker worker(dispatch_.get(), "w");
  EXPECT_EQ(worker.RunAll(), 8);
  const absl::StatusOr<v1::EvalJob> done = Get(job);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->state(), v1::EvalJob::STATE_SUCCEEDED);

  grpc::ClientContext context;
  v1::ListEvalResultsRequest request;
  request.set_name(job);
  v1::ListEvalResultsResponse results;
  ASSERT_TRUE(evaluation_->ListEvalResults(&context, request, &results).ok());
  EXPECT_EQ(results.cells_size(), 8);
}

TEST_F(DispatchTest, AWaitingWorkerGetsANewJobAtOnce) {
  StubWorker worker(dispatch_.get(), "w");
  const int before = store_->Count("lease_units");
  auto leasing = std::async(std::launch::async, [&] { return worker.Lease(1, kLong); });
  store_->AwaitCount("lease_units", before + 1);
  Create(SpecWithCells(1));
  const absl::StatusOr<v1::LeaseUnitsResponse> leased = leasing.get();
  ASSERT_TRUE(leased.ok()) << leased.status();
  EXPECT_EQ(leased->leases_size(), 1);
}

TEST_F(DispatchTest, WorkersThatWaitShareAJob) {
  constexpr int kWorkers = 50;
  std::vector<std::unique_ptr<StubWorker>> workers;
  std::vector<std::future<absl::StatusOr<v1::LeaseUnitsResponse>>> leases;
  const int before = store_->Count("lease_units");
  for (int i = 0; i < kWorkers; ++i) {
    workers.push_back(std::make_unique<StubWorker>(dispatch_.get(), absl::StrCat("w", i)));
    leases.push_back(std::async(
        std::launch::async, [worker = workers.back().get()] { return worker->Lease(1, kLong); }));
  }
  store_->AwaitCount("lease_units", before + kWorkers);
  Create(SpecWithCells(kWorkers));
  for (auto& lease : leases) {
    const absl::StatusOr<v1::LeaseUnitsResponse> leased = lease.get();
    ASSERT_TRUE(leased.ok()) << leased.status();
    EXPECT_EQ(leased->leases_size(), 1);
  }
}

TEST_F(DispatchTest, NothingComesBackAfterTheTimeThatWasAskedFor) {
  StubWorker worker(dispatch_.get(), "w");
  const absl::StatusOr<v1::LeaseUnitsResponse> leased = worker.Lease(1, absl::Milliseconds(10));
  ASSERT_TRUE(leased.ok()) << leased.status();
  EXPECT_EQ(leased->leases_size(), 0);
  const absl::StatusOr<v1::HeartbeatResponse> beat = worker.Heartbeat({}, absl::Milliseconds(10));
  ASSERT_TRUE(beat.ok()) << beat.status();
  EXPECT_EQ(beat->cancelled_attempt_ids_size(), 0);
}

TEST_F(DispatchTest, AHeartbeatThatWaitsHearsOfACancelledJob) {
  const std::string job = Create(SpecWithCells(1));
  StubWorker worker(dispatch_.get(), "w");
  const auto leased = worker.Lease(1, absl::ZeroDuration());
  ASSERT_TRUE(leased.ok() && leased->leases_size() == 1);
  const int before = store_->Count("heartbeat");
  auto beating =
      std::async(std::launch::async, [&] { return worker.Heartbeat({leased->leases(0)}, kLong); });
  store_->AwaitCount("heartbeat", before + 1);
  ASSERT_TRUE(Cancel(job).ok());
  const absl::StatusOr<v1::HeartbeatResponse> beat = beating.get();
  ASSERT_TRUE(beat.ok()) << beat.status();
  ASSERT_EQ(beat->cancelled_attempt_ids_size(), 1);
  EXPECT_EQ(beat->cancelled_attempt_ids(0), leased->leases(0).attempt_id());
}

TEST_F(DispatchTest, AnUnknownWorkerIsToldToRegister) {
  grpc::ClientContext context;
  v1::LeaseUnitsRequest request;
  request.set_worker_id("workers/stranger");
  request.set_max_units(1);
  request.set_wait_ms(60'000);
  v1::LeaseUnitsResponse response;
  EXPECT_EQ(dispatch_->LeaseUnits(&context, request, &response).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(DispatchTest, UnitsLeasedForACallerWhoIsGoneAreNotLost) {
  const std::string job = Create(SpecWithCells(1));
  StubWorker lost(dispatch_.get(), "lost");
  StubWorker other(dispatch_.get(), "other");
  store_->Hold("lease_units");
  const int before = store_->Count("lease_units");
  grpc::ClientContext context;
  auto leasing = std::async(std::launch::async, [&] { return lost.Lease(1, kLong, &context); });
  store_->AwaitCount("lease_units", before + 1);
  context.TryCancel();
  EXPECT_EQ(leasing.get().status().code(), absl::StatusCode::kCancelled);
  store_->Release();
  // Handed back at once; or when its lease runs out, where the server heard of it too late.
  absl::StatusOr<v1::LeaseUnitsResponse> taken;
  do {
    ASSERT_TRUE(other.Heartbeat({}, absl::ZeroDuration()).ok());
    taken = other.Lease(1, absl::Seconds(5));
    ASSERT_TRUE(taken.ok()) << taken.status();
  } while (taken->leases().empty());
  ASSERT_TRUE(other.Complete(taken->leases(0)).ok());
  EXPECT_EQ(Get(job)->state(), v1::EvalJob::STATE_SUCCEEDED);
}

TEST_F(DispatchTest, ShutdownEndsLongPollsWithTheHint) {
  std::vector<std::unique_ptr<StubWorker>> workers;
  std::vector<std::future<absl::Status>> polls;
  const int leases = store_->Count("lease_units");
  const int beats = store_->Count("heartbeat");
  for (int i = 0; i < 10; ++i) {
    workers.push_back(std::make_unique<StubWorker>(dispatch_.get(), absl::StrCat("w", i)));
    polls.push_back(std::async(std::launch::async, [worker = workers.back().get()] {
      return worker->Lease(1, kLong).status();
    }));
    polls.push_back(std::async(std::launch::async, [worker = workers.back().get()] {
      return worker->Heartbeat({}, kLong).status();
    }));
  }
  store_->AwaitCount("lease_units", leases + 10);
  store_->AwaitCount("heartbeat", beats + 10);
  server_->Shutdown(absl::Hours(1));
  for (auto& poll : polls) {
    const absl::Status status = poll.get();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(ErrorReason(status), "SERVER_SHUTTING_DOWN");
  }
}

class ShortLeaseTest : public ServerTest {
 protected:
  void SetUp() override {
    options_.lease_duration = absl::Seconds(1);
    StartServer();
  }
};

TEST_F(ShortLeaseTest, TheUnitsOfASilentWorkerGoToAnother) {
  const std::string job = Create(SpecWithCells(1));
  StubWorker silent(dispatch_.get(), "silent");
  const auto leased = silent.Lease(1, absl::ZeroDuration());
  ASSERT_TRUE(leased.ok() && leased->leases_size() == 1);
  StubWorker other(dispatch_.get(), "other");
  // The other one stays alive, and waits for the unit as long as it takes.
  absl::StatusOr<v1::LeaseUnitsResponse> taken;
  do {
    ASSERT_TRUE(other.Heartbeat({}, absl::ZeroDuration()).ok());
    taken = other.Lease(1, absl::Milliseconds(50));
    ASSERT_TRUE(taken.ok()) << taken.status();
  } while (taken->leases().empty());
  EXPECT_EQ(taken->leases(0).attempt(), 2);
  ASSERT_TRUE(other.Complete(taken->leases(0)).ok());
  EXPECT_EQ(Get(job)->state(), v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_EQ(Sample("hopscope_lease_expirations_total"), 1);
  EXPECT_EQ(Sample("hopscope_unit_retries_total{reason=\"WORKER_LOST\"}"), 1);
}

TEST_F(ShortLeaseTest, AHeartbeatReturnsInTimeForTheNext) {
  StubWorker worker(dispatch_.get(), "w");
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(worker.Heartbeat({}, kLong).ok());
  // A third of the lease's duration, far below the hour that was asked for.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

}  // namespace
}  // namespace hopscope::server::testing

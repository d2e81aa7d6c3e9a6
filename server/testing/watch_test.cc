// WatchEvalJob over a real channel.
#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/rpc/grpc_status.h"
#include "common/status.h"
#include "grpc/grpc.h"
#include "gtest/gtest.h"
#include "server/testing/server_fixture.h"

namespace hopscope::server::testing {
namespace {

constexpr char kNoSuchJob[] = "jobs/00000000000000000000000000";

using common::ErrorReason;
using common::FromGrpcStatus;

class WatchTest : public ServerTest {
 protected:
  void SetUp() override { StartServer(); }

  // Each event once, in order, and the last one ends the job.
  static void ExpectWhole(const std::vector<v1::EvalEvent>& events) {
    ASSERT_FALSE(events.empty());
    for (size_t i = 0; i < events.size(); ++i) {
      EXPECT_EQ(events[i].sequence(), static_cast<int64_t>(i) + 1);
    }
    EXPECT_TRUE(events.back().has_job_finished());
  }

  // Until the server has noticed that so many watchers are left.
  void AwaitWatchers(int count) {
    while (Sample("hopscope_watchers") != count) std::this_thread::yield();
  }
};

TEST_F(WatchTest, BringsWhatHappensWhileItHappens) {
  const std::string job = Create(SpecWithCells(20));
  auto watching = std::async(std::launch::async, [&] { return Watch(evaluation_.get(), job); });
  AwaitWatchers(1);
  StubWorker worker(dispatch_.get(), "w");
  EXPECT_EQ(worker.RunAll(), 20);
  const Watched watched = watching.get();
  EXPECT_TRUE(watched.status.ok()) << watched.status;
  ExpectWhole(watched.durable);
  std::set<int32_t> cells;
  for (const v1::EvalEvent& event : watched.durable) {
    EXPECT_EQ(event.job(), job);
    if (event.has_cell_completed()) cells.insert(event.cell_completed().result().cell().index());
  }
  EXPECT_EQ(cells.size(), 20u);
  AwaitWatchers(0);
}

TEST_F(WatchTest, ReplaysAFinishedJob) {
  const std::string job = Create(SpecWithCells(300));  // more than one page
  StubWorker worker(dispatch_.get(), "w");
  worker.RunAll();
  const Watched watched = Watch(evaluation_.get(), job);
  EXPECT_TRUE(watched.status.ok()) << watched.status;
  ExpectWhole(watched.durable);
  EXPECT_GE(watched.durable.size(), 300u);
}

TEST_F(WatchTest, AStreamThatIsCutResumesWithoutLossOrRepetition) {
  const std::string job = Create(SpecWithCells(100));
  auto working = std::async(std::launch::async, [&] {
    StubWorker worker(dispatch_.get(), "w");
    return worker.RunAll();
  });
  std::vector<v1::EvalEvent> all;
  absl::Status status = absl::UnknownError("not watched yet");
  while (!status.ok()) {
    const Watched part =
        Watch(evaluation_.get(), job, all.empty() ? 0 : all.back().sequence(), /*max_durable=*/7);
    all.insert(all.end(), part.durable.begin(), part.durable.end());
    status = part.status;
    ASSERT_TRUE(status.ok() || absl::IsCancelled(status)) << status;
  }
  EXPECT_EQ(working.get(), 100);
  ExpectWhole(all);
}

TEST_F(WatchTest, AWatcherWhoHasSeenTheEndIsDone) {
  const std::string job = Create(SpecWithCells(1));
  ASSERT_TRUE(Cancel(job).ok());
  const Watched first = Watch(evaluation_.get(), job);
  ExpectWhole(first.durable);
  const Watched again = Watch(evaluation_.get(), job, first.durable.back().sequence());
  EXPECT_TRUE(again.status.ok()) << again.status;
  EXPECT_TRUE(again.durable.empty());
}

TEST_F(WatchTest, RefusesWhatCannotBeWatched) {
  const std::string job = Create(SpecWithCells(1));
  EXPECT_EQ(Watch(evaluation_.get(), kNoSuchJob).status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Watch(evaluation_.get(), "nonsense").status.code(), absl::StatusCode::kInvalidArgument);
  const absl::Status negative = Watch(evaluation_.get(), job, -1).status;
  EXPECT_EQ(negative.code(), absl::StatusCode::kInvalidArgument);
  const absl::Status beyond = Watch(evaluation_.get(), job, 1000).status;
  EXPECT_EQ(beyond.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(common::GetErrorInfo(beyond)->metadata().at("field"), "after_sequence");
}

TEST_F(WatchTest, LiveEventsComeBesideTheDurableOnes) {
  const std::string job = Create(SpecWithCells(2));
  grpc::ClientContext context;
  v1::WatchEvalJobRequest request;
  request.set_name(job);
  const auto reader = evaluation_->WatchEvalJob(&context, request);
  AwaitWatchers(1);
  StubWorker worker(dispatch_.get(), "w");
  const auto leased = worker.Lease(1, absl::ZeroDuration());
  ASSERT_TRUE(leased.ok() && leased->leases_size() == 1);
  v1::WatchEvalJobResponse response;
  while (reader->Read(&response) && !response.event().has_unit_started()) {
  }
  EXPECT_EQ(response.event().sequence(), 0);
  EXPECT_EQ(response.event().unit_started().worker(), worker.id());
  ASSERT_TRUE(worker.Complete(leased->leases(0)).ok());
  while (reader->Read(&response) && !response.event().has_cell_progress()) {
  }
  EXPECT_EQ(response.event().sequence(), 0);
  EXPECT_EQ(response.event().cell_progress().job_items_done(), 1);
  context.TryCancel();
  while (reader->Read(&response)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  AwaitWatchers(0);
}

TEST_F(WatchTest, TwoHundredWatchersLeaveRoomForOthers) {
  constexpr int kWatchers = 200;
  const std::string job = Create(SpecWithCells(5));
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::WatchEvalJobResponse>>> readers;
  v1::WatchEvalJobRequest request;
  request.set_name(job);
  for (int i = 0; i < kWatchers; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    readers.push_back(evaluation_->WatchEvalJob(contexts.back().get(), request));
  }
  AwaitWatchers(kWatchers);
  EXPECT_TRUE(Get(job).ok());

  StubWorker worker(dispatch_.get(), "w");
  EXPECT_EQ(worker.RunAll(), 5);
  for (const auto& reader : readers) {
    std::vector<v1::EvalEvent> durable;
    for (v1::WatchEvalJobResponse response; reader->Read(&response);) {
      if (response.event().sequence() > 0) durable.push_back(response.event());
    }
    EXPECT_TRUE(reader->Finish().ok());
    ExpectWhole(durable);
  }
  AwaitWatchers(0);
}

TEST_F(WatchTest, ASlowReaderCostsNoMoreThanAPage) {
  constexpr int kEvents = 2000;
  const std::string job = Create(SpecWithCells(1));
  AddWarnings(job, kEvents, 4096);  // 8 MiB, or some 32 pages
  ASSERT_TRUE(Cancel(job).ok());

  // A client that takes in what fits the smallest window, and no more until it is read.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 65536);
  const auto stub = v1::EvaluationService::NewStub(NewChannel(arguments));
  grpc::ClientContext context;
  v1::WatchEvalJobRequest request;
  request.set_name(job);
  const auto reader = stub->WatchEvalJob(&context, request);
  std::vector<v1::EvalEvent> durable;
  v1::WatchEvalJobResponse response;
  ASSERT_TRUE(reader->Read(&response));
  durable.push_back(response.event());
  // However long it waits: the server reads the page that it writes, and what the windows have let
  // through.
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(Get(job).ok());
  EXPECT_LE(store_->Count("read_events"), 4);

  while (reader->Read(&response)) durable.push_back(response.event());
  EXPECT_TRUE(reader->Finish().ok());
  ExpectWhole(durable);
  EXPECT_GE(durable.size(), size_t{kEvents});
  EXPECT_GE(store_->Count("read_events"), 20);
}

TEST_F(WatchTest, ShutdownEndsWatchesWithTheHint) {
  const std::string job = Create(SpecWithCells(1));
  std::vector<std::future<Watched>> watches;
  for (int i = 0; i < 10; ++i) {
    watches.push_back(
        std::async(std::launch::async, [&] { return Watch(evaluation_.get(), job); }));
  }
  AwaitWatchers(10);
  server_->Shutdown(absl::Hours(1));
  for (std::future<Watched>& watch : watches) {
    const Watched watched = watch.get();
    EXPECT_EQ(watched.status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(ErrorReason(watched.status), "SERVER_SHUTTING_DOWN");
    EXPECT_TRUE(common::GetRetryDelay(watched.status).has_value());
  }
}

TEST_F(WatchTest, ShutdownDoesNotWaitForAReaderThatSleeps) {
  const std::string job = Create(SpecWithCells(1));
  AddWarnings(job, 2000, 4096);
  grpc::ClientContext context;
  v1::WatchEvalJobRequest request;
  request.set_name(job);
  const auto reader = evaluation_->WatchEvalJob(&context, request);
  v1::WatchEvalJobResponse response;
  ASSERT_TRUE(reader->Read(&response));
  StopServer(absl::Milliseconds(50));
  while (reader->Read(&response)) {
  }
  EXPECT_FALSE(reader->Finish().ok());
}

TEST_F(WatchTest, AWatchGoesOnOverARestart) {
  const std::string job = Create(SpecWithCells(10));
  StubWorker worker(dispatch_.get(), "w");
  const auto leased = worker.Lease(5, absl::ZeroDuration());
  ASSERT_TRUE(leased.ok());
  for (const v1::UnitLease& lease : leased->leases()) ASSERT_TRUE(worker.Complete(lease).ok());
  auto watching = std::async(std::launch::async, [&] { return Watch(evaluation_.get(), job); });
  AwaitWatchers(1);
  StopServer();
  Watched before = watching.get();
  EXPECT_EQ(before.status.code(), absl::StatusCode::kUnavailable);

  StartServer();
  StubWorker next_worker(dispatch_.get(), "w2");
  next_worker.RunAll();
  const int64_t seen = before.durable.empty() ? 0 : before.durable.back().sequence();
  const Watched after = Watch(evaluation_.get(), job, seen);
  EXPECT_TRUE(after.status.ok()) << after.status;
  before.durable.insert(before.durable.end(), after.durable.begin(), after.durable.end());
  ExpectWhole(before.durable);
}

// Watches that are opened, read, cut and finished while the job runs and is cancelled.
TEST_F(WatchTest, SurvivesReadersThatComeAndGo) {
  const std::string job = Create(SpecWithCells(200));
  auto working = std::async(std::launch::async, [&] {
    StubWorker worker(dispatch_.get(), "w");
    return worker.RunAll();
  });
  std::vector<std::thread> watchers;
  for (size_t t = 0; t < 4; ++t) {
    watchers.emplace_back([&, t] {
      for (size_t i = 0; i < 30; ++i) {
        const Watched watched = Watch(evaluation_.get(), job, 0, 1 + (i + t) % 40);
        EXPECT_TRUE(watched.status.ok() || absl::IsCancelled(watched.status)) << watched.status;
      }
    });
  }
  for (std::thread& watcher : watchers) watcher.join();
  EXPECT_EQ(working.get(), 200);
  AwaitWatchers(0);
}

}  // namespace
}  // namespace hopscope::server::testing

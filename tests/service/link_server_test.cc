// The link against a whole server, over real channels: what neither's own tests can show.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/casts.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/checkpoint/testing/write_checkpoint.h"
#include "common/rpc/credentials.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/transport.h"
#include "common/spec/catalog.h"
#include "common/status.h"
#include "common/version.h"
#include "gmock/gmock.h"
#include "grpc/grpc.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "hopscope/v1/evaluation.grpc.pb.h"
#include "server/server.h"
#include "worker/engine/fake_engine.h"
#include "worker/link/grpc_dispatch_stub.h"
#include "worker/link/worker_loop.h"
#include "worker/link/worker_metrics.h"

namespace hopscope {
namespace {

using checkpoint::testing::GptJ;
using checkpoint::testing::TempFolder;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The shape of the model that the fixture writes.
engine::FakeEngine::Options EngineOptions() { return {.layers = 2, .heads = 2}; }

// A worker in this process, from its registration to its stop.
class Worker {
 public:
  Worker(const std::string& id, const std::string& server,
         link::WorkerLoop::Options options = link::WorkerLoop::Options(),
         engine::FakeEngine::Options engine_options = EngineOptions())
      : engine_(std::move(engine_options)),
        stub_(link::MakeGrpcDispatchStub(link::MakeDispatchChannel(server))) {
    options.worker_id = absl::StrCat("workers/", id);
    engine_.Describe(&options.description);
    options.description.set_host("test");
    options.description.set_pid(1);
    if (options.description.version().major() == 0 && options.description.version().minor() == 0) {
      *options.description.mutable_version() = common::ProgramVersion();
    }
    metrics_ =
        std::make_unique<link::WorkerMetrics>(options.description, &engine_, common::Clock::Real());
    loop_ = std::make_unique<link::WorkerLoop>(std::move(options), stub_.get(), &engine_,
                                               metrics_.get(), common::Clock::Real());
    thread_ = std::thread([this] { result_ = loop_->Run(); });
  }
  ~Worker() {
    engine_.ReleaseAll();
    if (thread_.joinable()) Stop().IgnoreError();
  }

  engine::FakeEngine& engine() { return engine_; }
  link::WorkerLoop& loop() { return *loop_; }

  absl::Status Stop() {
    loop_->RequestStop();
    return Join();
  }
  absl::Status Join() {
    thread_.join();
    return std::move(result_);
  }

 private:
  engine::FakeEngine engine_;
  std::unique_ptr<link::DispatchStub> stub_;
  std::unique_ptr<link::WorkerMetrics> metrics_;
  std::unique_ptr<link::WorkerLoop> loop_;
  absl::Status result_;
  std::thread thread_;
};

// What a watch brought.
struct History {
  std::vector<v1::EvalEvent> durable;
  absl::Status status;

  int Count(v1::EvalEvent::KindCase kind) const {
    return static_cast<int>(
        std::count_if(durable.begin(), durable.end(),
                      [kind](const v1::EvalEvent& event) { return event.kind_case() == kind; }));
  }
};

class LinkServerTest : public testing::Test {
 protected:
  LinkServerTest() {
    checkpoint::testing::WriteCheckpoint(models_, "number", GptJ{.vocab_size = 137});
  }

  // On the address of the last one where there was one.
  void StartServer() {
    server::Server::Options options;
    options.listen = address_;
    options.metrics_listen = "";
    options.state_dir = state_.path();
    options.model_root = models_.path();
    options.lease_duration = lease_duration_;
    auto server = server::Server::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    address_ = server_->address();
    grpc::ChannelArguments arguments = common::MakeChannelArguments();
    // No connection is shared with the workers, which may be waiting to try again.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    evaluation_ = v1::EvaluationService::NewStub(
        grpc::CreateCustomChannel(address_, common::MakeChannelCredentials(), arguments));
  }
  void StopServer() {
    server_->Shutdown(absl::Seconds(10));
    server_.reset();
  }

  // 2 seeds x 3 hop counts x 4 lengths, with scores.
  static v1::EvalJobSpec Sweep() {
    v1::EvalJobSpec spec;
    v1::TaskSpec* task = spec.add_tasks();
    task->set_task("number");
    for (const int hops : {1, 2, 3}) task->add_hops(hops);
    for (const int added : {0, 10, 20, 40}) task->add_added_tokens(added);
    task->set_samples(kSamples);
    task->add_checkpoints("number");
    spec.add_scorers()->set_name("accuracy");
    spec.add_scorers()->set_name("positional_symbolic");
    spec.add_seeds(1);
    spec.add_seeds(2);
    spec.set_no_cache(true);
    return spec;
  }
  static constexpr int kSamples = 37;
  static constexpr int kCells = 2 * 3 * 4;

  static v1::EvalJobSpec OneCell() {
    v1::EvalJobSpec spec = Sweep();
    spec.clear_seeds();
    spec.mutable_tasks(0)->clear_hops();
    spec.mutable_tasks(0)->add_hops(1);
    spec.mutable_tasks(0)->clear_added_tokens();
    return spec;
  }

  std::string Submit(const v1::EvalJobSpec& spec) {
    grpc::ClientContext context;
    v1::CreateEvalJobRequest request;
    *request.mutable_spec() = spec;
    v1::CreateEvalJobResponse response;
    const grpc::Status status = evaluation_->CreateEvalJob(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.job().name();
  }

  void Cancel(const std::string& job) {
    grpc::ClientContext context;
    v1::CancelEvalJobRequest request;
    request.set_name(job);
    v1::CancelEvalJobResponse response;
    const grpc::Status status = evaluation_->CancelEvalJob(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  // Follows a job to its end.
  History Watch(const std::string& job) {
    History history;
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    v1::WatchEvalJobRequest request;
    request.set_name(job);
    const auto reader = evaluation_->WatchEvalJob(&context, request);
    for (v1::WatchEvalJobResponse response; reader->Read(&response);) {
      if (response.event().sequence() > 0) history.durable.push_back(response.event());
    }
    history.status = common::FromGrpcStatus(reader->Finish());
    return history;
  }

  // Follows a job, which must end in that state.
  History AwaitEnd(const std::string& job, v1::EvalJob::State state) {
    History history = Watch(job);
    EXPECT_TRUE(history.status.ok()) << history.status;
    if (history.durable.empty() || !history.durable.back().has_job_finished()) {
      ADD_FAILURE() << "no JobFinished event";
    } else {
      EXPECT_EQ(history.durable.back().job_finished().state(), state);
    }
    return history;
  }

  // Every result of a job, in the order of the plan.
  v1::ListEvalResultsResponse Results(const std::string& job) {
    v1::ListEvalResultsResponse all;
    std::string token;
    do {
      grpc::ClientContext context;
      v1::ListEvalResultsRequest request;
      request.set_name(job);
      request.set_page_token(token);
      v1::ListEvalResultsResponse page;
      const grpc::Status status = evaluation_->ListEvalResults(&context, request, &page);
      EXPECT_TRUE(status.ok()) << status.error_message();
      if (!status.ok()) return all;
      all.mutable_cells()->MergeFrom(page.cells());
      all.mutable_heads()->MergeFrom(page.heads());
      token = page.next_page_token();
    } while (!token.empty());
    return all;
  }

  // A text that is the same where every number is, bit for bit.
  std::string Bits(const std::string& job) {
    const v1::ListEvalResultsResponse results = Results(job);
    std::string bits;
    const auto append = [&bits](const auto& values) {
      for (const double value : values)
        absl::StrAppend(&bits, " ", absl::Hex(absl::bit_cast<uint64_t>(value)));
    };
    for (const v1::CellResult& cell : results.cells()) {
      absl::StrAppend(&bits, "cell ", cell.cell().index(), " ", cell.state(), " ", cell.items(),
                      " ", cell.items_failed(), " ", cell.correct());
      append(std::vector<double>{cell.accuracy(), cell.standard_error(), cell.ci_low(),
                                 cell.ci_high()});
      absl::StrAppend(&bits, "\n");
    }
    for (const v1::HeadScores& heads : results.heads()) {
      absl::StrAppend(&bits, "heads ", heads.cell().index(), " ", heads.scorer(), " ",
                      heads.metric());
      append(heads.mean());
      append(heads.standard_error());
      for (const int64_t items : heads.items()) absl::StrAppend(&bits, " ", items);
      absl::StrAppend(&bits, "\n");
    }
    return bits;
  }

  void ExpectComplete(const std::string& job) {
    const v1::ListEvalResultsResponse results = Results(job);
    ASSERT_EQ(results.cells_size(), kCells);
    // Metrics that are computed unless others are asked for.
    EXPECT_EQ(results.heads_size(), kCells * 3);
    for (const v1::CellResult& cell : results.cells()) {
      EXPECT_EQ(cell.state(), v1::CellResult::STATE_COMPLETED);
      EXPECT_EQ(cell.items(), kSamples);
    }
  }

  TempFolder models_;
  TempFolder state_;
  std::string address_ = "127.0.0.1:0";
  absl::Duration lease_duration_ = absl::Seconds(30);
  std::unique_ptr<server::Server> server_;
  std::unique_ptr<v1::EvaluationService::Stub> evaluation_;
};

TEST_F(LinkServerTest, OneAndThreeWorkersGiveTheSameResultsBitForBit) {
  StartServer();
  std::string alone;
  {
    Worker worker("alone", address_);
    const std::string job = Submit(Sweep());
    AwaitEnd(job, v1::EvalJob::STATE_SUCCEEDED);
    ExpectComplete(job);
    alone = Bits(job);
    EXPECT_TRUE(worker.Stop().ok());
  }
  engine::FakeEngine::Options wide = EngineOptions();
  wide.capacity = 2;
  Worker a("a", address_), b("b", address_, {}, wide), c("c", address_);
  // Each takes part.
  for (Worker* worker : {&a, &b, &c}) worker->engine().Hold();
  const std::string job = Submit(Sweep());
  EXPECT_TRUE(a.engine().AwaitHeld(1));
  EXPECT_TRUE(b.engine().AwaitHeld(2));
  EXPECT_TRUE(c.engine().AwaitHeld(1));
  for (Worker* worker : {&a, &b, &c}) worker->engine().ReleaseAll();
  const History history = AwaitEnd(job, v1::EvalJob::STATE_SUCCEEDED);
  ExpectComplete(job);
  EXPECT_EQ(Bits(job), alone);
  EXPECT_EQ(history.Count(v1::EvalEvent::kCellCompleted), kCells);
  EXPECT_EQ(history.Count(v1::EvalEvent::kUnitFailed), 0);
  EXPECT_EQ(a.engine().runs() + b.engine().runs() + c.engine().runs(), kCells);
}

TEST_F(LinkServerTest, ResultsInManyPartsAreTheSame) {
  StartServer();
  std::string whole;
  {
    Worker worker("whole", address_);
    const std::string job = Submit(OneCell());
    AwaitEnd(job, v1::EvalJob::STATE_SUCCEEDED);
    whole = Bits(job);
    EXPECT_TRUE(worker.Stop().ok());
  }
  link::WorkerLoop::Options options;
  options.reporter.max_part_bytes = 50;
  Worker worker("parts", address_, options);
  const std::string job = Submit(OneCell());
  AwaitEnd(job, v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_EQ(Bits(job), whole);
}

TEST_F(LinkServerTest, CancelStopsWhatRunsSoonAndTheWorkerGoesOn) {
  StartServer();
  Worker worker("w", address_);
  worker.engine().Hold();
  const std::string job = Submit(Sweep());
  ASSERT_TRUE(worker.engine().AwaitHeld(1));
  const absl::Time begin = absl::Now();
  Cancel(job);
  ASSERT_TRUE(worker.engine().AwaitHeld(0));
  // A second is promised; the rest is for a loaded machine. Without the news it would be a poll's
  // 10 s.
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
  AwaitEnd(job, v1::EvalJob::STATE_CANCELLED);
  worker.engine().ReleaseAll();
  const std::string next = Submit(Sweep());
  AwaitEnd(next, v1::EvalJob::STATE_SUCCEEDED);
  ExpectComplete(next);
}

TEST_F(LinkServerTest, StoppedWorkerLeavesNoTraceInTheHistory) {
  StartServer();
  auto leaving = std::make_unique<Worker>("leaving", address_);
  // Units that are short, so that some are prefetched when the third is held.
  leaving->engine().Hold();
  leaving->engine().Release(2);
  const std::string job = Submit(Sweep());
  ASSERT_TRUE(leaving->engine().AwaitHeld(1));
  leaving->loop().RequestStop();
  leaving->engine().ReleaseAll();
  EXPECT_TRUE(leaving->Join().ok());
  const int64_t done = leaving->engine().runs();
  leaving = nullptr;

  Worker staying("staying", address_);
  const History history = AwaitEnd(job, v1::EvalJob::STATE_SUCCEEDED);
  ExpectComplete(job);
  EXPECT_EQ(history.Count(v1::EvalEvent::kUnitFailed), 0);
  EXPECT_EQ(history.Count(v1::EvalEvent::kWorkerLost), 0);
  // What was handed back was computed elsewhere, and nothing twice.
  EXPECT_EQ(done + staying.engine().runs(), kCells);
}

TEST_F(LinkServerTest, IdleWorkerStopsSoon) {
  StartServer();
  Worker worker("w", address_);
  const std::string job = Submit(OneCell());
  AwaitEnd(job, v1::EvalJob::STATE_SUCCEEDED);
  const absl::Time begin = absl::Now();
  EXPECT_TRUE(worker.Stop().ok());
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));  // far below the wait of a poll
}

TEST_F(LinkServerTest, UnitThatStillRunsAfterTheGraceTimeIsHandedBack) {
  StartServer();
  link::WorkerLoop::Options options;
  options.grace = absl::ZeroDuration();
  Worker leaving("leaving", address_, options);
  leaving.engine().Hold();
  const std::string job = Submit(OneCell());
  ASSERT_TRUE(leaving.engine().AwaitHeld(1));
  EXPECT_TRUE(leaving.Stop().ok());
  Worker staying("staying", address_);
  const History history = AwaitEnd(job, v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_EQ(history.Count(v1::EvalEvent::kUnitFailed), 0);
}

TEST_F(LinkServerTest, FailedAttemptIsInTheHistoryWithItsReason) {
  StartServer();
  Worker worker("w", address_);
  worker.engine().FailRun(1, "OUT_OF_MEMORY");
  const std::string job = Submit(OneCell());
  const History history = AwaitEnd(job, v1::EvalJob::STATE_SUCCEEDED);
  ASSERT_EQ(history.Count(v1::EvalEvent::kUnitFailed), 1);
  for (const v1::EvalEvent& event : history.durable) {
    if (!event.has_unit_failed()) continue;
    EXPECT_EQ(event.unit_failed().failure().reason(), "OUT_OF_MEMORY");
    EXPECT_EQ(event.unit_failed().worker(), "workers/w");
    EXPECT_TRUE(event.unit_failed().will_retry());
  }
}

TEST_F(LinkServerTest, RestartedServerGetsWhatWasComputedWhileItWasAway) {
  StartServer();
  Worker worker("w", address_);
  worker.engine().Hold();
  const std::string job = Submit(Sweep());
  ASSERT_TRUE(worker.engine().AwaitHeld(1));
  StopServer();
  // A unit ends with no server there to take its result.
  worker.engine().Release(1);
  ASSERT_TRUE(worker.engine().AwaitHeld(0));
  StartServer();
  worker.engine().ReleaseAll();
  const History history = AwaitEnd(job, v1::EvalJob::STATE_SUCCEEDED);
  ExpectComplete(job);
  EXPECT_EQ(history.Count(v1::EvalEvent::kUnitFailed), 0);
  EXPECT_EQ(history.Count(v1::EvalEvent::kWorkerLost), 0);
  EXPECT_EQ(worker.engine().runs(), kCells);
}

TEST_F(LinkServerTest, WorkerStartedBeforeTheServerIsUsed) {
  // Finds a port that is free.
  StartServer();
  StopServer();
  Worker worker("early", address_);
  EXPECT_FALSE(worker.loop().CheckReady().ok());
  StartServer();
  const std::string job = Submit(OneCell());
  AwaitEnd(job, v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_TRUE(worker.loop().CheckReady().ok());
}

TEST_F(LinkServerTest, LeasesOfALongUnitAreRenewed) {
  lease_duration_ = absl::Milliseconds(1500);
  StartServer();
  engine::FakeEngine::Options slow = EngineOptions();
  slow.delay = absl::Seconds(4);  // beyond two leases
  Worker worker("slow", address_, {}, slow);
  const std::string job = Submit(OneCell());
  const History history = AwaitEnd(job, v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_EQ(history.Count(v1::EvalEvent::kUnitFailed), 0);
  EXPECT_EQ(history.Count(v1::EvalEvent::kWorkerLost), 0);
  EXPECT_EQ(worker.engine().runs(), 1);
}

TEST_F(LinkServerTest, WorkerOfAnotherMajorVersionIsRefusedWithBothVersions) {
  StartServer();
  link::WorkerLoop::Options options;
  options.description.mutable_version()->set_major(common::ProgramVersion().major() + 1);
  Worker worker("future", address_, options);
  const absl::Status status = worker.Join();
  EXPECT_EQ(common::ErrorReason(status), "VERSION_MISMATCH");
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr(std::string(common::VersionString())));
}

}  // namespace
}  // namespace hopscope

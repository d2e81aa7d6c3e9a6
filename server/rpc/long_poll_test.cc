#include "server/rpc/long_poll.h"

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/mutex.h"
#include "common/rpc/credentials.h"
#include "common/rpc/grpc_status.h"
#include "common/status.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "hopscope/v1/admin.grpc.pb.h"
#include "prometheus/registry.h"

namespace hopscope::rpc {
namespace {

// A pile of things that polls take one from; GetQueueStatus answers with an entry where it got one.
class PileService : public v1::AdminService::CallbackService {
 public:
  PileService(Runtime* runtime, absl::Duration wait)
      : runtime_(*runtime), lane_(&runtime->executor, 4), wait_(wait) {}

  grpc::ServerUnaryReactor* GetQueueStatus(grpc::CallbackServerContext* context,
                                           const v1::GetQueueStatusRequest*,
                                           v1::GetQueueStatusResponse* response) override {
    const CallRecord record(&runtime_.metrics, Method::kGetQueueStatus,
                            &context->client_metadata());
    const auto poll = std::make_shared<LongPoll>(
        &runtime_, &lane_, record,
        [this, response]() -> absl::StatusOr<bool> {
          BeforeTry();
          common::MutexLock lock(&mutex_);
          ++tries_;
          changed_.SignalAll();
          if (broken_) return absl::DataLossError("broken");
          if (things_ == 0) return false;
          --things_;
          response->add_entries();
          return true;
        },
        [this] {
          common::MutexLock lock(&mutex_);
          ++things_;
          ++undone_;
          changed_.SignalAll();
        });
    poll->Start(wait_,
                [this](std::function<void()> wake) { return signals_.OnWork(std::move(wake)); });
    return poll.get();
  }

  void Put(int things) {
    {
      common::MutexLock lock(&mutex_);
      things_ += things;
    }
    signals_.RaiseWork();
  }
  void Break() {
    {
      common::MutexLock lock(&mutex_);
      broken_ = true;
    }
    signals_.RaiseWork();
  }
  void RaiseForNothing() { signals_.RaiseWork(); }
  // From here on tries wait before they look, until Release().
  void Hold() {
    common::MutexLock lock(&mutex_);
    held_ = true;
  }
  void Release() {
    common::MutexLock lock(&mutex_);
    held_ = false;
    changed_.SignalAll();
  }
  void AwaitTries(int tries) {
    common::MutexLock lock(&mutex_);
    while (tries_ < tries) changed_.Wait(&mutex_);
  }
  void AwaitHeldTry() {
    common::MutexLock lock(&mutex_);
    while (in_held_try_ == 0) changed_.Wait(&mutex_);
  }
  void AwaitUndone() {
    common::MutexLock lock(&mutex_);
    while (undone_ == 0) changed_.Wait(&mutex_);
  }
  int things() {
    common::MutexLock lock(&mutex_);
    return things_;
  }

 private:
  void BeforeTry() {
    common::MutexLock lock(&mutex_);
    ++in_held_try_;
    changed_.SignalAll();
    while (held_) changed_.Wait(&mutex_);
    --in_held_try_;
  }

  Runtime& runtime_;
  ExecutorLane lane_;
  jobs::Signals signals_;
  const absl::Duration wait_;
  common::Mutex mutex_;
  common::CondVar changed_;
  int things_ ABSL_GUARDED_BY(mutex_) = 0;
  int tries_ ABSL_GUARDED_BY(mutex_) = 0;
  int undone_ ABSL_GUARDED_BY(mutex_) = 0;
  int in_held_try_ ABSL_GUARDED_BY(mutex_) = 0;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
};

class LongPollTest : public ::testing::Test {
 protected:
  void StartServer(absl::Duration wait) {
    service_ = std::make_unique<PileService>(&runtime_, wait);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    stub_ = v1::AdminService::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), common::MakeChannelCredentials()));
  }
  void TearDown() override {
    if (server_ == nullptr) return;
    service_->Release();
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(10));
    server_->Wait();
    runtime_.executor.Shutdown();
  }

  struct Answer {
    absl::Status status;
    int things = 0;
  };
  // One call, in the background.
  struct Poll {
    std::unique_ptr<grpc::ClientContext> context = std::make_unique<grpc::ClientContext>();
    std::future<Answer> answer;
  };
  Poll StartPoll() {
    Poll poll;
    poll.answer = std::async(std::launch::async, [this, context = poll.context.get()] {
      v1::GetQueueStatusResponse response;
      Answer answer;
      answer.status = common::FromGrpcStatus(stub_->GetQueueStatus(context, {}, &response));
      answer.things = response.entries_size();
      return answer;
    });
    return poll;
  }

  prometheus::Registry registry_;
  Runtime runtime_{{.executor = {.threads = 8}}, registry_};
  std::unique_ptr<PileService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::AdminService::Stub> stub_;
};

TEST_F(LongPollTest, AnswersAtOnceWhereSomethingIsThere) {
  StartServer(absl::Hours(1));
  service_->Put(1);
  const Answer answer = StartPoll().answer.get();
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.things, 1);
}

TEST_F(LongPollTest, AnswersWithNothingWhenTimeIsUp) {
  StartServer(absl::Milliseconds(20));
  const Answer answer = StartPoll().answer.get();
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(answer.things, 0);
}

TEST_F(LongPollTest, TriesOnceWhereItMayNotWait) {
  StartServer(absl::ZeroDuration());
  EXPECT_EQ(StartPoll().answer.get().things, 0);
  service_->Put(1);
  EXPECT_EQ(StartPoll().answer.get().things, 1);
}

TEST_F(LongPollTest, WakesForNews) {
  StartServer(absl::Hours(1));
  Poll poll = StartPoll();
  service_->AwaitTries(1);
  service_->Put(1);
  EXPECT_EQ(poll.answer.get().things, 1);
}

TEST_F(LongPollTest, NewsDuringATryLeadToAnother) {
  StartServer(absl::Hours(1));
  service_->Hold();
  Poll poll = StartPoll();
  service_->AwaitHeldTry();
  service_->RaiseForNothing();
  service_->RaiseForNothing();
  service_->Release();
  service_->AwaitTries(2);
  service_->Put(1);
  EXPECT_EQ(poll.answer.get().things, 1);
}

TEST_F(LongPollTest, ReturnsTheErrorOfATry) {
  StartServer(absl::Hours(1));
  Poll poll = StartPoll();
  service_->AwaitTries(1);
  service_->Break();
  const Answer answer = poll.answer.get();
  EXPECT_EQ(answer.status.code(), absl::StatusCode::kDataLoss);
}

TEST_F(LongPollTest, EndsWhenItsClientIsGone) {
  StartServer(absl::Hours(1));
  Poll poll = StartPoll();
  service_->AwaitTries(1);
  poll.context->TryCancel();
  EXPECT_EQ(poll.answer.get().status.code(), absl::StatusCode::kCancelled);
  // The server knows too: nobody takes what comes now.
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::hours(1));
  service_->Put(1);
  EXPECT_EQ(service_->things(), 1);
}

TEST_F(LongPollTest, TakesBackWhatNobodyWaitsForAnyMore) {
  StartServer(absl::Hours(1));
  service_->Hold();
  Poll poll = StartPoll();
  service_->AwaitHeldTry();
  service_->Put(1);
  runtime_.open_calls.EndAll(ShuttingDownError());
  service_->Release();
  service_->AwaitUndone();
  EXPECT_EQ(service_->things(), 1);
  EXPECT_EQ(poll.answer.get().status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(LongPollTest, EndsWithTheHintWhenTheServerStops) {
  StartServer(absl::Hours(1));
  Poll poll = StartPoll();
  service_->AwaitTries(1);
  runtime_.open_calls.EndAll(ShuttingDownError());
  const Answer answer = poll.answer.get();
  EXPECT_EQ(answer.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(common::ErrorReason(answer.status), "SERVER_SHUTTING_DOWN");
  EXPECT_TRUE(common::GetRetryDelay(answer.status).has_value());
  // New ones are not let in.
  EXPECT_EQ(common::ErrorReason(StartPoll().answer.get().status), "SERVER_SHUTTING_DOWN");
}

TEST_F(LongPollTest, ABusyServerSaysSo) {
  StartServer(absl::Hours(1));
  runtime_.executor.Shutdown();  // takes nothing any more, as with a full queue
  const Answer answer = StartPoll().answer.get();
  EXPECT_EQ(answer.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(common::ErrorReason(answer.status), "SERVER_BUSY");
}

TEST_F(LongPollTest, ManyWaitersShareWhatComesAndNothingIsLost) {
  StartServer(absl::Hours(1));
  constexpr int kPolls = 100;
  std::vector<Poll> polls;
  for (int i = 0; i < kPolls; ++i) polls.push_back(StartPoll());
  service_->AwaitTries(kPolls);
  for (int i = 0; i < kPolls / 2; ++i) service_->Put(2);
  for (Poll& poll : polls) EXPECT_EQ(poll.answer.get().things, 1);
  EXPECT_EQ(service_->things(), 0);
}

// Polls end by news, by time, by cancellation and by the server's end, all racing.
TEST_F(LongPollTest, SurvivesEverythingAtOnce) {
  StartServer(absl::Milliseconds(2));
  std::atomic<bool> stop{false};
  std::thread putting([&] {
    while (!stop) {
      service_->Put(1);
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> clients;
  for (int t = 0; t < 4; ++t) {
    clients.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        Poll poll = StartPoll();
        if ((i + t) % 3 == 0) poll.context->TryCancel();
        const absl::StatusCode code = poll.answer.get().status.code();
        EXPECT_TRUE(code == absl::StatusCode::kOk || code == absl::StatusCode::kCancelled ||
                    code == absl::StatusCode::kUnavailable);
        if (t == 0 && i == 80) runtime_.open_calls.EndAll(ShuttingDownError());
      }
    });
  }
  for (std::thread& client : clients) client.join();
  stop = true;
  putting.join();
}

}  // namespace
}  // namespace hopscope::rpc

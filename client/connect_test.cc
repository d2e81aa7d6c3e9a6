#include "client/connect.h"

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/client.h"
#include "common/mutex.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/transport.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "hopscope/v1/evaluation.grpc.pb.h"

namespace hopscope::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// A service that keeps ten events of one job and cuts its streams as it is told.
class FakeService : public v1::EvaluationService::Service {
 public:
  static constexpr int kEvents = 10;

  // Ends each of the next streams after so many events, with this status.
  void CutStreams(std::deque<int> after, grpc::Status end) {
    common::MutexLock lock(&mutex_);
    cuts_ = std::move(after);
    cut_status_ = std::move(end);
  }
  void HoldStreams() { hold_ = true; }
  int streams() const { return streams_; }
  std::map<std::string, std::string> metadata() const {
    common::MutexLock lock(&mutex_);
    return metadata_;
  }
  // Blocks until a stream is held.
  void AwaitHeld() {
    common::MutexLock lock(&mutex_);
    while (!held_) changed_.Wait(&mutex_);
  }

  grpc::Status CreateEvalJob(grpc::ServerContext* context, const v1::CreateEvalJobRequest* request,
                             v1::CreateEvalJobResponse* response) override {
    Remember(*context);
    if (request->spec().tasks_size() == 0) {
      return common::ToGrpcStatus(
          common::InvalidField("EMPTY", "spec.tasks", "[]", "name at least one task"));
    }
    response->mutable_job()->set_name("jobs/1");
    return grpc::Status::OK;
  }

  grpc::Status WatchEvalJob(grpc::ServerContext* context, const v1::WatchEvalJobRequest* request,
                            grpc::ServerWriter<v1::WatchEvalJobResponse>* writer) override {
    ++streams_;
    Remember(*context);
    int cut = kEvents;
    grpc::Status end;
    {
      common::MutexLock lock(&mutex_);
      if (!cuts_.empty()) {
        cut = cuts_.front();
        cuts_.pop_front();
        end = cut_status_;
      }
    }
    for (int64_t sequence = request->after_sequence() + 1; sequence <= kEvents; ++sequence) {
      if (cut-- == 0) return end;
      v1::WatchEvalJobResponse response;
      v1::EvalEvent* event = response.mutable_event();
      event->set_sequence(sequence);
      if (sequence == kEvents) {
        event->mutable_job_finished()->set_state(v1::EvalJob::STATE_SUCCEEDED);
      } else {
        event->mutable_warning()->set_message("w");
      }
      writer->Write(response);
      if (hold_) {
        {
          common::MutexLock lock(&mutex_);
          held_ = true;
          changed_.SignalAll();
        }
        while (!context->IsCancelled()) std::this_thread::yield();
        return grpc::Status::CANCELLED;
      }
    }
    return grpc::Status::OK;
  }

 private:
  void Remember(const grpc::ServerContext& context) {
    common::MutexLock lock(&mutex_);
    metadata_.clear();
    for (const auto& [key, value] : context.client_metadata()) {
      metadata_[std::string(key.data(), key.size())] = std::string(value.data(), value.size());
    }
  }

  mutable common::Mutex mutex_;
  common::CondVar changed_;
  std::deque<int> cuts_ ABSL_GUARDED_BY(mutex_);
  grpc::Status cut_status_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> metadata_ ABSL_GUARDED_BY(mutex_);
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> hold_ = false;
  std::atomic<int> streams_ = 0;
};

class ConnectTest : public testing::Test {
 protected:
  ConnectTest() { StartServer(); }
  ~ConnectTest() override { StopServer(); }

  void StartServer() {
    grpc::ServerBuilder builder;
    common::ApplyTransportLimits(builder);
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port_), grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  void StopServer() {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  Client MakeClient() {
    ConnectOptions options;
    options.server = absl::StrCat("127.0.0.1:", port_);
    options.metadata.tenant = "lab";
    options.connection.cancellation = &cancellation_;
    options.connection.backoff = {.initial = absl::Milliseconds(10), .max = absl::Milliseconds(50)};
    options.connection.retry_for = retry_for_;
    options.connection.on_retry = [this](const RetryNotice& notice) {
      if (on_retry_) on_retry_(notice);
    };
    auto connection = Connect(std::move(options));
    EXPECT_TRUE(connection.ok()) << connection.status();
    return Client(*std::move(connection));
  }

  static std::pair<std::vector<int64_t>, absl::Status> ReadAll(EventReader& reader) {
    std::vector<int64_t> sequences;
    while (true) {
      const auto event = reader.Next();
      if (!event.ok()) return {sequences, event.status()};
      if (!event->has_value()) return {sequences, absl::OkStatus()};
      sequences.push_back((*event)->sequence());
    }
  }

  int port_ = 0;
  FakeService service_;
  std::unique_ptr<grpc::Server> server_;
  Cancellation cancellation_;
  absl::Duration retry_for_ = absl::Seconds(10);
  std::function<void(const RetryNotice&)> on_retry_;
};

TEST_F(ConnectTest, WatchSeesEachEventOnceThoughItsStreamsAreCut) {
  service_.CutStreams({0, 3, 1, 0, 4}, grpc::Status(grpc::StatusCode::UNAVAILABLE, "cut"));
  const Client client = MakeClient();
  const auto reader = client.WatchEvalJob("jobs/1");
  const auto [sequences, status] = ReadAll(*reader);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(sequences, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  EXPECT_EQ(service_.streams(), 6);
}

TEST_F(ConnectTest, WatchSurvivesAServerThatRestarts) {
  service_.HoldStreams();
  const Client client = MakeClient();
  const auto reader = client.WatchEvalJob("jobs/1");
  ASSERT_EQ(reader->Next()->value().sequence(), 1);
  service_.AwaitHeld();
  std::thread restarter([this] {
    StopServer();
    StartServer();
  });
  // One event a stream: each is held and cut by the next restart.
  ASSERT_EQ(reader->Next()->value().sequence(), 2);
  restarter.join();
}

TEST_F(ConnectTest, AServerThatDiesReachesABlockedWatcher) {
  service_.HoldStreams();
  const Client client = MakeClient();
  std::vector<std::string> retried;
  on_retry_ = [&](const RetryNotice& notice) {
    retried.push_back(notice.method);
    if (retried.size() == 3) cancellation_.Cancel();
  };
  const auto reader = client.WatchEvalJob("jobs/1");
  ASSERT_TRUE(reader->Next().ok());
  service_.AwaitHeld();
  std::thread killer([this] { server_->Shutdown(std::chrono::system_clock::now()); });
  EXPECT_EQ(reader->Next().status().code(), absl::StatusCode::kCancelled);
  killer.join();
  EXPECT_THAT(retried, ElementsAre("WatchEvalJob", "WatchEvalJob", "WatchEvalJob"));
}

TEST_F(ConnectTest, CancelFromAnotherThreadReachesABlockedWatcher) {
  service_.HoldStreams();
  const Client client = MakeClient();
  const auto reader = client.WatchEvalJob("jobs/1");
  ASSERT_TRUE(reader->Next().ok());
  service_.AwaitHeld();
  std::thread canceller([&] { reader->Cancel(); });
  EXPECT_EQ(reader->Next().status().code(), absl::StatusCode::kCancelled);
  canceller.join();
}

TEST_F(ConnectTest, AReaderMayBeDroppedInTheMiddleOfAStream) {
  service_.HoldStreams();
  const Client client = MakeClient();
  const auto reader = client.WatchEvalJob("jobs/1");
  ASSERT_TRUE(reader->Next().ok());
}

TEST_F(ConnectTest, ErrorsArriveWithTheirDetails) {
  const auto job = MakeClient().CreateEvalJob({});
  EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
  const auto info = common::GetErrorInfo(job.status());
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "EMPTY");
  EXPECT_EQ(info->metadata().at("field"), "spec.tasks");
}

TEST_F(ConnectTest, CallsCarryTenantAndTrace) {
  v1::EvalJobSpec spec;
  spec.add_tasks();
  const Client client = MakeClient();
  ASSERT_TRUE(client.CreateEvalJob(spec).ok());
  const auto first = service_.metadata();
  EXPECT_EQ(first.at("hopscope-tenant"), "lab");
  EXPECT_THAT(first.at("traceparent"), MatchesRegex("00-[0-9a-f]{32}-[0-9a-f]{16}-01"));
  ASSERT_TRUE(ReadAll(*client.WatchEvalJob("jobs/1")).second.ok());
  const auto second = service_.metadata();
  EXPECT_EQ(second.at("traceparent").substr(0, 36), first.at("traceparent").substr(0, 36))
      << "the same trace";
  EXPECT_NE(second.at("traceparent"), first.at("traceparent")) << "another span";
}

TEST_F(ConnectTest, AServerThatIsNotThereIsUnavailable) {
  StopServer();
  retry_for_ = absl::Milliseconds(200);
  int retries = 0;
  on_retry_ = [&](const RetryNotice&) { ++retries; };
  EXPECT_EQ(MakeClient().GetEvalJob("jobs/1").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_GT(retries, 0);
  StartServer();
}

TEST_F(ConnectTest, CallsThatAServerDoesNotKnowSaySo) {
  EXPECT_EQ(MakeClient().GetCapabilities().status().code(), absl::StatusCode::kUnimplemented);
}

TEST(ConnectAddressTest, PlainTextToAnotherMachineNeedsConsent) {
  const auto refused = Connect({.server = "10.1.2.3:7070"});
  EXPECT_EQ(common::ErrorReason(refused.status()), "INSECURE_ADDRESS");
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("--allow_insecure"));
  EXPECT_TRUE(Connect({.server = "10.1.2.3:7070", .allow_insecure = true}).ok());
  EXPECT_TRUE(Connect({.server = "localhost:7070"}).ok());
  EXPECT_TRUE(Connect({.server = "[::1]:7070"}).ok());
}

TEST(ConnectAddressTest, AddressesThatAreNoneAreRefused) {
  for (const char* server :
       {"", "localhost", "localhost:0", "localhost:70700", "http://localhost:7070"}) {
    EXPECT_EQ(Connect({.server = server}).status().code(), absl::StatusCode::kInvalidArgument)
        << server;
  }
  ConnectOptions options;
  options.metadata.tenant = "a\nb";
  EXPECT_EQ(Connect(std::move(options)).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hopscope::client

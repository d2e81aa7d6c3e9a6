// The server as a whole: start, configuration errors, health, reflection, metrics, shutdown.
#include "server/server.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/address.h"
#include "common/ops/http_get.h"
#include "common/rpc/credentials.h"
#include "common/status.h"
#include "common/version.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "gtest/gtest.h"
#include "server/testing/server_fixture.h"

namespace hopscope::server::testing {
namespace {

using common::ErrorReason;
using common::GetErrorInfo;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class LifecycleTest : public ServerTest {
 protected:
  // A unary call by name, with the request as bytes; the response's bytes where it is OK.
  grpc::StatusCode CallByName(const std::string& method, const std::string& request,
                              std::string* response) {
    grpc::GenericStub stub(NewChannel());
    grpc::ClientContext context;
    const grpc::Slice slice(request);
    grpc::ByteBuffer request_bytes(&slice, 1);
    grpc::ByteBuffer response_bytes;
    std::promise<grpc::Status> done;
    stub.UnaryCall(&context, method, grpc::StubOptions(), &request_bytes, &response_bytes,
                   [&done](grpc::Status status) { done.set_value(std::move(status)); });
    const grpc::Status status = done.get_future().get();
    if (status.ok()) {
      std::vector<grpc::Slice> slices;
      EXPECT_TRUE(response_bytes.Dump(&slices).ok());
      response->clear();
      for (const grpc::Slice& part : slices) {
        response->append(reinterpret_cast<const char*>(part.begin()), part.size());
      }
    }
    return status.error_code();
  }

  // grpc.health.v1.Health/Check: 1 is SERVING, 2 NOT_SERVING; -1 where there is no such service.
  int Health(const std::string& service) {
    std::string request;
    if (!service.empty()) {
      request = std::string("\x0a") + static_cast<char>(service.size()) + service;
    }
    std::string response;
    if (CallByName("/grpc.health.v1.Health/Check", request, &response) != grpc::StatusCode::OK) {
      return -1;
    }
    return response.size() == 2 && response[0] == '\x08' ? response[1] : 0;
  }

  int Http(const std::string& path) {
    return ops::HttpGet(*common::ParseHostPort("", server_->metrics_address()), path).code;
  }
};

TEST_F(LifecycleTest, HealthIsThereForEachService) {
  StartServer();
  for (const char* service : {"", "hopscope.v1.EvaluationService", "hopscope.v1.DispatchService",
                              "hopscope.v1.AdminService"}) {
    EXPECT_EQ(Health(service), 1) << service;
  }
  EXPECT_EQ(Health("hopscope.v1.NoSuchService"), -1);
  EXPECT_EQ(Http("/livez"), 200);
  EXPECT_EQ(Http("/readyz"), 200);
}

TEST_F(LifecycleTest, AStoreThatFailsTurnsHealthOffAndOnAgain) {
  StartServer();
  store_->Fail(
      common::MakeError(absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE", "disk is full"));
  while (Health("") != 2) std::this_thread::yield();
  EXPECT_EQ(Health("hopscope.v1.EvaluationService"), 2);
  EXPECT_EQ(Http("/readyz"), 503);
  EXPECT_EQ(Http("/livez"), 200);
  EXPECT_EQ(TryCreate(SpecWithCells(1)).status().code(), absl::StatusCode::kUnavailable);
  // What cannot be known is not shown.
  EXPECT_THAT(Metric("hopscope_jobs"), IsEmpty());
  store_->Fail(absl::OkStatus());
  while (Health("") != 1) std::this_thread::yield();
  EXPECT_EQ(Http("/readyz"), 200);
  EXPECT_TRUE(TryCreate(SpecWithCells(1)).ok());
}

TEST_F(LifecycleTest, AnOperationThatFailsTurnsHealthOffWithoutWaitingForAProbe) {
  options_.probe_interval = absl::Hours(1);
  StartServer();
  store_->Fail(
      common::MakeError(absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE", "disk is full"));
  const absl::Status refused = TryCreate(SpecWithCells(1)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorReason(refused), "STORE_UNAVAILABLE");
  EXPECT_EQ(Health(""), 2);
  EXPECT_EQ(Health("hopscope.v1.DispatchService"), 2);
  EXPECT_EQ(Http("/readyz"), 503);
}

TEST_F(LifecycleTest, ReflectionCanBeSwitchedOff) {
  const std::string method = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
  std::string response;
  StartServer();
  EXPECT_NE(CallByName(method, "", &response), grpc::StatusCode::UNIMPLEMENTED);
  StopServer();
  options_.reflection = false;
  StartServer();
  EXPECT_EQ(CallByName(method, "", &response), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(Health(""), 1);
}

TEST_F(LifecycleTest, ShutdownTurnsHealthOffFirstAndTakesNoNewJobs) {
  StartServer();
  const std::string job = Create(SpecWithCells(1));
  store_->Hold("get_job");
  auto slow = std::async(std::launch::async, [&] { return Get(job).status(); });
  store_->AwaitCount("get_job", 1);
  const common::HostPort metrics = *common::ParseHostPort("", server_->metrics_address());
  auto stopping = std::async(std::launch::async, [&] { server_->Shutdown(absl::Hours(1)); });
  // Still there for probes, while a call is in progress.
  while (ops::HttpGet(metrics, "/readyz").code != 503) std::this_thread::yield();
  // UNAVAILABLE; CANCELLED where the call met the connection as it closed.
  EXPECT_FALSE(TryCreate(SpecWithCells(1)).ok());
  store_->Release();
  EXPECT_TRUE(slow.get().ok());
  stopping.get();
  EXPECT_EQ(TryCreate(SpecWithCells(1)).status().code(), absl::StatusCode::kUnavailable);
  StopServer();
  StartServer();
  EXPECT_EQ(Sample("hopscope_jobs{state=\"pending\"}"), 1);
}

TEST_F(LifecycleTest, StateSurvivesARestart) {
  StartServer();
  const std::string job = Create(SpecWithCells(2));
  StopServer();
  StartServer();
  EXPECT_TRUE(Get(job).ok());
  StubWorker worker(dispatch_.get(), "w");
  EXPECT_EQ(worker.RunAll(), 2);
}

TEST_F(LifecycleTest, MetricsShowWhatHappened) {
  StartServer();
  Create(SpecWithCells(3));
  EXPECT_EQ(Sample("hopscope_jobs{state=\"pending\"}"), 1);
  EXPECT_EQ(Sample("hopscope_units{state=\"queued\"}"), 3);
  StubWorker worker(dispatch_.get(), "w");
  EXPECT_EQ(Sample("hopscope_workers{state=\"active\",device=\"cpu\"}"), 1);
  EXPECT_EQ(Sample("hopscope_workers{state=\"lost\",device=\"cuda\"}"), 0);
  worker.RunAll();
  EXPECT_EQ(Sample("hopscope_jobs{state=\"succeeded\"}"), 1);
  EXPECT_EQ(Sample("hopscope_units_completed_total{outcome=\"completed\"}"), 3);
  EXPECT_EQ(Sample("hopscope_items_scored_total{hops=\"1\",length_bucket=\"0\",task=\"number\"}"),
            1);
  EXPECT_EQ(
      Sample("hopscope_items_scored_total{hops=\"1\",length_bucket=\"1-64\",task=\"number\"}"), 2);
  EXPECT_EQ(
      Sample("hopscope_items_scored_total{hops=\"4\",length_bucket=\"513+\",task=\"letter\"}"), 0);
  EXPECT_EQ(Sample("hopscope_rpc_requests_total{code=\"OK\",method=\"EvaluationService/"
                   "CreateEvalJob\"}"),
            1);
  EXPECT_THAT(Metric("hopscope_build_info"), HasSubstr(std::string(common::VersionString())));
}

TEST_F(LifecycleTest, NoCallAddsASeries) {
  StartServer();
  const auto count_series = [this] {
    const ops::HttpAnswer answer =
        ops::HttpGet(*common::ParseHostPort("", server_->metrics_address()), "/metrics");
    return std::count(answer.body.begin(), answer.body.end(), '\n');
  };
  const auto before = count_series();
  for (int i = 0; i < 20; ++i) {
    v1::EvalJobSpec spec = SpecWithCells(2);
    (*spec.mutable_labels())["run"] = std::to_string(i);
    spec.set_tenant("default");
    Create(spec);
    EXPECT_FALSE(
        Get(std::string("jobs/") + std::string(25, '0') + static_cast<char>('a' + i % 8)).ok());
  }
  StubWorker worker(dispatch_.get(), "w");
  EXPECT_EQ(worker.RunAll(), 40);
  EXPECT_EQ(count_series(), before);
}

// A configuration that would start, for tests that spoil one thing.
class ConfigurationTest : public ServerTest {
 protected:
  Server::Options GoodOptions() const {
    Server::Options options;
    options.listen = "127.0.0.1:0";
    options.metrics_listen = "127.0.0.1:0";
    options.state_dir = state_folder_.Path("deep/state");
    options.model_root = models_folder_.path();
    return options;
  }
  static void ExpectRefused(Server::Options options, const std::string& flag,
                            const std::string& reason) {
    const absl::Status status = Server::Start(std::move(options)).status();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(ErrorReason(status), reason);
    ASSERT_TRUE(GetErrorInfo(status).has_value());
    EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), flag);
    EXPECT_THAT(std::string(status.message()), HasSubstr(flag));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
  }
};

TEST_F(ConfigurationTest, AGoodOneStartsAndMakesItsStateFolder) {
  auto server = Server::Start(GoodOptions());
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_NE((*server)->address(), "127.0.0.1:0");
  EXPECT_TRUE(std::filesystem::exists(state_folder_.Path("deep/state/hopscope.db")));
}

TEST_F(ConfigurationTest, EveryOperationOnTheStoreHasASeriesOfItsOwn) {
  auto server = Server::Start(GoodOptions());
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  Connect();
  const std::string job = Create(SpecWithCells(3));
  StubWorker worker(dispatch_.get(), "w");
  EXPECT_EQ(worker.RunAll(), 3);
  EXPECT_TRUE(worker.Heartbeat({}, absl::ZeroDuration()).ok());
  EXPECT_TRUE(Watch(evaluation_.get(), job).status.ok());
  EXPECT_TRUE(Get(job).ok());
  EXPECT_FALSE(Cancel(job).ok());
  grpc::ClientContext list_context;
  v1::ListEvalJobsResponse jobs;
  EXPECT_TRUE(evaluation_->ListEvalJobs(&list_context, {}, &jobs).ok());
  grpc::ClientContext results_context;
  v1::ListEvalResultsRequest request;
  request.set_name(job);
  v1::ListEvalResultsResponse results;
  EXPECT_TRUE(evaluation_->ListEvalResults(&results_context, request, &results).ok());

  EXPECT_GT(Sample("hopscope_store_operation_seconds_count{operation=\"report_unit\"}"), 0);
  EXPECT_EQ(Sample("hopscope_store_operation_seconds_count{operation=\"other\"}"), 0);
}

TEST_F(ConfigurationTest, ASecondServerOnTheSameStateIsRefused) {
  auto server = Server::Start(GoodOptions());
  ASSERT_TRUE(server.ok()) << server.status();
  ExpectRefused(GoodOptions(), "--state_dir", "STORE_IN_USE");
}

TEST_F(ConfigurationTest, ATakenPortIsRefused) {
  auto server = Server::Start(GoodOptions());
  ASSERT_TRUE(server.ok()) << server.status();
  Server::Options options = GoodOptions();
  options.state_dir = state_folder_.Path("other");
  options.listen = (*server)->address();
  ExpectRefused(std::move(options), "--listen", "ADDRESS_IN_USE");
  options = GoodOptions();
  options.state_dir = state_folder_.Path("other");
  options.metrics_listen = (*server)->metrics_address();
  ExpectRefused(std::move(options), "--metrics_listen", "ADDRESS_IN_USE");
}

TEST_F(ConfigurationTest, BadFlagsAreNamed) {
  Server::Options options = GoodOptions();
  options.listen = "nonsense";
  ExpectRefused(std::move(options), "--listen", "BAD_ADDRESS");
  options = GoodOptions();
  options.metrics_listen = "127.0.0.1";
  ExpectRefused(std::move(options), "--metrics_listen", "BAD_ADDRESS");
  options = GoodOptions();
  options.listen = "0.0.0.0:0";
  ExpectRefused(std::move(options), "--listen", "INSECURE_ADDRESS");
  options = GoodOptions();
  options.model_root = "";
  ExpectRefused(std::move(options), "--model_root", "FLAG_MISSING");
  options = GoodOptions();
  options.state_dir = "";
  ExpectRefused(std::move(options), "--state_dir", "FLAG_MISSING");
  options = GoodOptions();
  options.lease_duration = absl::ZeroDuration();
  ExpectRefused(std::move(options), "--lease_duration", "BAD_FLAG");
  options = GoodOptions();
  options.max_attempts = 0;
  ExpectRefused(std::move(options), "--max_attempts", "BAD_FLAG");

  options = GoodOptions();
  options.model_root = "/no/such/folder";
  const absl::Status no_models = Server::Start(std::move(options)).status();
  EXPECT_THAT(std::string(no_models.message()), HasSubstr("--model_root"));
  options = GoodOptions();
  options.state_dir = "/dev/null/state";
  const absl::Status no_state = Server::Start(std::move(options)).status();
  EXPECT_THAT(std::string(no_state.message()), HasSubstr("--state_dir"));
}

TEST_F(ConfigurationTest, ListensEverywhereWhereItIsTold) {
  Server::Options options = GoodOptions();
  options.listen = "0.0.0.0:0";
  options.allow_insecure = true;
  options.metrics_listen = "";
  auto server = Server::Start(std::move(options));
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ((*server)->metrics_address(), "");
}

}  // namespace
}  // namespace hopscope::server::testing

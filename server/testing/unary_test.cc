// EvaluationService and AdminService over a real channel: what unary calls answer, and how they
// fail.
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "common/rpc/grpc_status.h"
#include "common/status.h"
#include "common/version.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/server_fixture.h"

namespace hopscope::server::testing {
namespace {

constexpr char kNoSuchJob[] = "jobs/00000000000000000000000000";

using common::ErrorReason;
using common::FromGrpcStatus;
using common::GetErrorInfo;
using ::testing::HasSubstr;

class UnaryTest : public ServerTest {
 protected:
  void SetUp() override { StartServer(); }
};

TEST_F(UnaryTest, CreatesGetsListsAndCancels) {
  const std::string job = Create(SpecWithCells(3));
  const absl::StatusOr<v1::EvalJob> found = Get(job);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->state(), v1::EvalJob::STATE_PENDING);
  EXPECT_EQ(found->totals().cells(), 3);

  grpc::ClientContext context;
  v1::ListEvalJobsResponse list;
  ASSERT_TRUE(evaluation_->ListEvalJobs(&context, {}, &list).ok());
  ASSERT_EQ(list.jobs_size(), 1);
  EXPECT_EQ(list.jobs(0).name(), job);

  const absl::StatusOr<v1::EvalJob> cancelled = Cancel(job);
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->state(), v1::EvalJob::STATE_CANCELLED);
}

TEST_F(UnaryTest, CapabilitiesAndCheckpointsAreThere) {
  grpc::ClientContext capabilities_context;
  v1::GetCapabilitiesResponse capabilities;
  ASSERT_TRUE(evaluation_->GetCapabilities(&capabilities_context, {}, &capabilities).ok());
  EXPECT_EQ(capabilities.version(), common::VersionString());
  EXPECT_GT(capabilities.tasks_size(), 0);

  grpc::ClientContext checkpoints_context;
  v1::ListCheckpointsResponse checkpoints;
  ASSERT_TRUE(evaluation_->ListCheckpoints(&checkpoints_context, {}, &checkpoints).ok());
  EXPECT_EQ(checkpoints.checkpoints_size(), 2);
}

TEST_F(UnaryTest, ABadSpecArrivesWithItsField) {
  v1::EvalJobSpec spec = SpecWithCells(1);
  spec.mutable_tasks(0)->add_hops(99);
  const absl::Status status = TryCreate(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(GetErrorInfo(status).has_value());
  EXPECT_EQ(GetErrorInfo(status)->domain(), "hopscope.dev");
  EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), "spec.tasks[0].hops[1]");
  EXPECT_EQ(GetErrorInfo(status)->metadata().at("value"), "99");
  EXPECT_THAT(std::string(status.message()), HasSubstr("spec.tasks[0].hops[1]"));
}

TEST_F(UnaryTest, AnUnknownJobIsNotFound) {
  const absl::Status status = Get(kNoSuchJob).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(GetErrorInfo(status).has_value());
}

TEST_F(UnaryTest, WhatIsNotImplementedSaysSo) {
  const auto expect_unimplemented = [](const grpc::Status& status, const std::string& method) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << method;
    const absl::Status converted = FromGrpcStatus(status);
    EXPECT_EQ(ErrorReason(converted), "METHOD_NOT_IMPLEMENTED") << method;
    EXPECT_THAT(std::string(converted.message()), HasSubstr(method));
  };
  // Each call with a context of its own.
  const auto call = [&](auto stub, auto method, auto request, auto response) {
    grpc::ClientContext context;
    return (stub->*method)(&context, request, &response);
  };
  using Evaluation = v1::EvaluationService::Stub;
  using Admin = v1::AdminService::Stub;
  Evaluation* evaluation = evaluation_.get();
  Admin* admin = admin_.get();
  expect_unimplemented(call(evaluation, &Evaluation::PauseEvalJob, v1::PauseEvalJobRequest(),
                            v1::PauseEvalJobResponse()),
                       "PauseEvalJob");
  expect_unimplemented(call(evaluation, &Evaluation::ResumeEvalJob, v1::ResumeEvalJobRequest(),
                            v1::ResumeEvalJobResponse()),
                       "ResumeEvalJob");
  expect_unimplemented(call(evaluation, &Evaluation::DeleteEvalJob, v1::DeleteEvalJobRequest(),
                            v1::DeleteEvalJobResponse()),
                       "DeleteEvalJob");
  expect_unimplemented(call(evaluation, &Evaluation::RetryEvalJob, v1::RetryEvalJobRequest(),
                            v1::RetryEvalJobResponse()),
                       "RetryEvalJob");
  expect_unimplemented(
      call(evaluation, &Evaluation::ListUnits, v1::ListUnitsRequest(), v1::ListUnitsResponse()),
      "ListUnits");
  expect_unimplemented(
      call(admin, &Admin::ListWorkers, v1::ListWorkersRequest(), v1::ListWorkersResponse()),
      "ListWorkers");
  expect_unimplemented(
      call(admin, &Admin::DrainWorker, v1::DrainWorkerRequest(), v1::DrainWorkerResponse()),
      "DrainWorker");
  expect_unimplemented(
      call(admin, &Admin::UndrainWorker, v1::UndrainWorkerRequest(), v1::UndrainWorkerResponse()),
      "UndrainWorker");
  expect_unimplemented(call(admin, &Admin::GetQueueStatus, v1::GetQueueStatusRequest(),
                            v1::GetQueueStatusResponse()),
                       "GetQueueStatus");

  grpc::ClientContext export_context;
  const auto exported = evaluation->ExportEvalResults(&export_context, {});
  v1::ExportEvalResultsResponse row;
  EXPECT_FALSE(exported->Read(&row));
  expect_unimplemented(exported->Finish(), "ExportEvalResults");

  EXPECT_EQ(Sample("hopscope_rpc_requests_total{code=\"UNIMPLEMENTED\",method=\"EvaluationService/"
                   "ExportEvalResults\"}"),
            1);
}

class UploadTest : public UnaryTest {
 protected:
  // Uploads such pieces, as far as the server takes them.
  absl::StatusOr<v1::UploadTokensResponse> Upload(const std::vector<std::string>& pieces,
                                                  const std::string& tenant = "") {
    grpc::ClientContext context;
    if (!tenant.empty()) context.AddMetadata("hopscope-tenant", tenant);
    v1::UploadTokensResponse response;
    const auto writer = evaluation_->UploadTokens(&context, &response);
    v1::UploadTokensRequest piece;
    for (const std::string& data : pieces) {
      piece.set_data(data);
      if (!writer->Write(piece)) break;
    }
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    if (!status.ok()) return FromGrpcStatus(status);
    return response;
  }

  absl::StatusOr<v1::FetchTokensResponse> Fetch(const std::string& digest, int64_t first,
                                                int64_t count) {
    grpc::ClientContext context;
    v1::FetchTokensRequest request;
    request.set_digest(digest);
    request.set_first_item(first);
    request.set_item_count(count);
    v1::FetchTokensResponse response;
    const grpc::Status status = dispatch_->FetchTokens(&context, request, &response);
    if (!status.ok()) return FromGrpcStatus(status);
    return response;
  }
};

TEST_F(UploadTest, SequencesGoUpInPiecesAndComeBackInPages) {
  std::string line = "{\"tokens\":[1";
  while (line.size() < 700'000) line += ",2";
  line += "]}\n";
  const auto uploaded = Upload({line.substr(0, 1000), line.substr(1000), line, "{\"tokens\":[3]}"});
  ASSERT_TRUE(uploaded.ok()) << uploaded.status();
  EXPECT_EQ(uploaded->sequences(), 3);
  const auto page = Fetch(uploaded->digest(), 0, 2);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_LT(page->data().size(), 1u << 20);
  EXPECT_EQ(page->total_bytes(), static_cast<int64_t>(2 * line.size() - 1));
  EXPECT_EQ(Fetch(uploaded->digest(), 2, 1)->data(), "{\"tokens\":[3]}");
  EXPECT_EQ(ErrorReason(Upload({}).status()), "TOKENS_FILE_INVALID") << "nothing was sent";
}

TEST_F(UploadTest, WrongUploadsEndWithTheReasonWhileTheClientStillSends) {
  const std::vector<std::string> rest(50, std::string(100'000, ' '));
  std::vector<std::string> pieces = {"{\"tokens\":[]}\n"};
  pieces.insert(pieces.end(), rest.begin(), rest.end());
  const absl::Status wrong = Upload(pieces).status();
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorReason(wrong), "TOKENS_FILE_INVALID");
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("tokens:1: "));
  EXPECT_EQ(ErrorReason(Upload({std::string((1 << 20) + 1, '\n')}).status()), "LIMIT_EXCEEDED");
  EXPECT_EQ(ErrorReason(Upload({"{\"tokens\":[1]}"}, "not a name").status()), "TENANT_INVALID");
  EXPECT_EQ(Fetch("sha256:0", 0, 1).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(UploadTest, AClientThatGivesUpLeavesNothingBehind) {
  {
    grpc::ClientContext context;
    v1::UploadTokensResponse response;
    const auto writer = evaluation_->UploadTokens(&context, &response);
    v1::UploadTokensRequest piece;
    piece.set_data("{\"tokens\":[1]}\n");
    ASSERT_TRUE(writer->Write(piece));
    context.TryCancel();
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_TRUE(Upload({"{\"tokens\":[1]}\n"}).ok());
}

TEST_F(UnaryTest, ARequestIdMakesCreateIdempotentOverTheWire) {
  v1::CreateEvalJobRequest request;
  *request.mutable_spec() = SpecWithCells(1);
  request.set_request_id("once");
  std::string names[2];
  for (std::string& name : names) {
    grpc::ClientContext context;
    v1::CreateEvalJobResponse response;
    ASSERT_TRUE(evaluation_->CreateEvalJob(&context, request, &response).ok());
    name = response.job().name();
  }
  EXPECT_EQ(names[0], names[1]);
}

TEST_F(UnaryTest, TheTenantComesFromMetadata) {
  grpc::ClientContext context;
  context.AddMetadata("hopscope-tenant", "team-a");
  v1::CreateEvalJobRequest request;
  *request.mutable_spec() = SpecWithCells(1);
  v1::CreateEvalJobResponse response;
  const grpc::Status status = evaluation_->CreateEvalJob(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.job().spec().tenant(), "team-a");

  grpc::ClientContext bad_context;
  bad_context.AddMetadata("hopscope-tenant", "not a name");
  const absl::Status refused =
      FromGrpcStatus(evaluation_->CreateEvalJob(&bad_context, request, &response));
  EXPECT_EQ(ErrorReason(refused), "TENANT_INVALID");
}

TEST_F(UnaryTest, TheTraceTravelsToTheWorker) {
  constexpr char kTrace[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  grpc::ClientContext context;
  context.AddMetadata("traceparent", kTrace);
  v1::CreateEvalJobRequest request;
  *request.mutable_spec() = SpecWithCells(1);
  v1::CreateEvalJobResponse response;
  ASSERT_TRUE(evaluation_->CreateEvalJob(&context, request, &response).ok());
  StubWorker worker(dispatch_.get(), "w");
  const absl::StatusOr<v1::LeaseUnitsResponse> leased = worker.Lease(1, absl::ZeroDuration());
  ASSERT_TRUE(leased.ok()) << leased.status();
  ASSERT_EQ(leased->leases_size(), 1);
  EXPECT_EQ(leased->leases(0).unit().traceparent(), kTrace);
}

TEST_F(UnaryTest, ADeadlineEndsACallThatTheStoreHoldsUp) {
  const std::string job = Create(SpecWithCells(1));
  store_->Hold("get_job");
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  v1::GetEvalJobRequest request;
  request.set_name(job);
  v1::GetEvalJobResponse response;
  EXPECT_EQ(evaluation_->GetEvalJob(&context, request, &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  store_->Release();
  EXPECT_TRUE(Get(job).ok());
}

TEST_F(UnaryTest, CancellingACallFreesItsCaller) {
  const std::string job = Create(SpecWithCells(1));
  store_->Hold("get_job");
  grpc::ClientContext context;
  auto status = std::async(std::launch::async, [&] {
    v1::GetEvalJobRequest request;
    request.set_name(job);
    v1::GetEvalJobResponse response;
    return evaluation_->GetEvalJob(&context, request, &response).error_code();
  });
  store_->AwaitCount("get_job", 1);
  context.TryCancel();
  EXPECT_EQ(status.get(), grpc::StatusCode::CANCELLED);
  store_->Release();
  EXPECT_TRUE(Get(job).ok());
}

TEST_F(UnaryTest, CallsBeyondTheQueueAreRefusedAndTheRestAnswered) {
  const std::string job = Create(SpecWithCells(1));
  StopServer();
  options_.executor = {.threads = 1, .max_queue = 1};
  options_.probe_interval = absl::Hours(1);
  StartServer();
  // The first probe has a task too, which may be in the way.
  while (!Get(job).ok()) {
  }
  const int before = store_->Count("get_job");
  store_->Hold("get_job");
  auto running = std::async(std::launch::async, [&] { return Get(job).status(); });
  store_->AwaitCount("get_job", before + 1);
  // One waits in the queue, so that of any two more at least one is refused.
  auto second = std::async(std::launch::async, [&] { return Get(job).status(); });
  auto third = std::async(std::launch::async, [&] { return Get(job).status(); });
  absl::Status refused;
  while (refused.ok()) {
    // A call that does get the queue's one place gives it up again.
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(20));
    v1::GetEvalJobRequest request;
    request.set_name(job);
    v1::GetEvalJobResponse response;
    const grpc::Status status = evaluation_->GetEvalJob(&context, request, &response);
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) refused = FromGrpcStatus(status);
  }
  EXPECT_EQ(ErrorReason(refused), "SERVER_BUSY");
  EXPECT_TRUE(common::GetRetryDelay(refused).has_value());
  store_->Release();
  EXPECT_TRUE(running.get().ok());
  for (const absl::Status& status : {second.get(), third.get()}) {
    EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
  }
  EXPECT_TRUE(Get(job).ok());
}

TEST_F(UnaryTest, AStoreThatFailsIsUnavailableNotLost) {
  const std::string job = Create(SpecWithCells(1));
  store_->Fail(
      common::MakeError(absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE", "disk is full"));
  EXPECT_EQ(TryCreate(SpecWithCells(1)).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Get(job).status().code(), absl::StatusCode::kUnavailable);
  store_->Fail(absl::OkStatus());
  EXPECT_TRUE(Get(job).ok());
}

}  // namespace
}  // namespace hopscope::server::testing

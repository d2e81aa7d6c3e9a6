#include "server/rpc/evaluation_service.h"

#include <memory>

#include "common/status.h"
#include "server/rpc/call_metadata.h"
#include "server/rpc/event_stream.h"
#include "server/rpc/unary.h"
#include "server/rpc/upload_stream.h"

namespace hopscope::rpc {

grpc::ServerUnaryReactor* EvaluationService::CreateEvalJob(grpc::CallbackServerContext* context,
                                                           const v1::CreateEvalJobRequest* request,
                                                           v1::CreateEvalJobResponse* response) {
  return AnswerUnary(runtime_, Method::kCreateEvalJob, context, request, response,
                     [this, context](const v1::CreateEvalJobRequest& create)
                         -> absl::StatusOr<v1::CreateEvalJobResponse> {
                       if (runtime_.open_calls.draining()) return ShuttingDownError();
                       HOPSCOPE_ASSIGN_OR_RETURN(const jobs::CallContext call,
                                                 ReadCallContext(context->client_metadata()));
                       return jobs_->CreateEvalJob(create, call);
                     });
}

grpc::ServerUnaryReactor* EvaluationService::GetEvalJob(grpc::CallbackServerContext* context,
                                                        const v1::GetEvalJobRequest* request,
                                                        v1::GetEvalJobResponse* response) {
  return AnswerUnary(runtime_, Method::kGetEvalJob, context, request, response,
                     [this](const v1::GetEvalJobRequest& get) { return jobs_->GetEvalJob(get); });
}

grpc::ServerUnaryReactor* EvaluationService::ListEvalJobs(grpc::CallbackServerContext* context,
                                                          const v1::ListEvalJobsRequest* request,
                                                          v1::ListEvalJobsResponse* response) {
  return AnswerUnary(
      runtime_, Method::kListEvalJobs, context, request, response,
      [this](const v1::ListEvalJobsRequest& list) { return jobs_->ListEvalJobs(list); });
}

grpc::ServerWriteReactor<v1::WatchEvalJobResponse>* EvaluationService::WatchEvalJob(
    grpc::CallbackServerContext* context, const v1::WatchEvalJobRequest* request) {
  const CallRecord record(&runtime_.metrics, Method::kWatchEvalJob, &context->client_metadata());
  const auto stream = std::make_shared<EventStream>(&runtime_, jobs_, signals_, record, *request);
  stream->Start();
  return stream.get();
}

grpc::ServerUnaryReactor* EvaluationService::CancelEvalJob(grpc::CallbackServerContext* context,
                                                           const v1::CancelEvalJobRequest* request,
                                                           v1::CancelEvalJobResponse* response) {
  return AnswerUnary(
      runtime_, Method::kCancelEvalJob, context, request, response,
      [this](const v1::CancelEvalJobRequest& cancel) { return jobs_->CancelEvalJob(cancel); });
}

grpc::ServerUnaryReactor* EvaluationService::PauseEvalJob(grpc::CallbackServerContext* context,
                                                          const v1::PauseEvalJobRequest*,
                                                          v1::PauseEvalJobResponse*) {
  return RefuseUnary(runtime_, Method::kPauseEvalJob, context);
}

grpc::ServerUnaryReactor* EvaluationService::ResumeEvalJob(grpc::CallbackServerContext* context,
                                                           const v1::ResumeEvalJobRequest*,
                                                           v1::ResumeEvalJobResponse*) {
  return RefuseUnary(runtime_, Method::kResumeEvalJob, context);
}

grpc::ServerUnaryReactor* EvaluationService::DeleteEvalJob(grpc::CallbackServerContext* context,
                                                           const v1::DeleteEvalJobRequest*,
                                                           v1::DeleteEvalJobResponse*) {
  return RefuseUnary(runtime_, Method::kDeleteEvalJob, context);
}

grpc::ServerUnaryReactor* EvaluationService::RetryEvalJob(grpc::CallbackServerContext* context,
                                                          const v1::RetryEvalJobRequest*,
                                                          v1::RetryEvalJobResponse*) {
  return RefuseUnary(runtime_, Method::kRetryEvalJob, context);
}

grpc::ServerUnaryReactor* EvaluationService::ListEvalResults(
    grpc::CallbackServerContext* context, const v1::ListEvalResultsRequest* request,
    v1::ListEvalResultsResponse* response) {
  return AnswerUnary(
      runtime_, Method::kListEvalResults, context, request, response,
      [this](const v1::ListEvalResultsRequest& list) { return jobs_->ListEvalResults(list); });
}

grpc::ServerWriteReactor<v1::ExportEvalResultsResponse>* EvaluationService::ExportEvalResults(
    grpc::CallbackServerContext* context, const v1::ExportEvalResultsRequest*) {
  return RefuseStream<grpc::ServerWriteReactor<v1::ExportEvalResultsResponse>>(
      runtime_, Method::kExportEvalResults, context);
}

grpc::ServerUnaryReactor* EvaluationService::ListUnits(grpc::CallbackServerContext* context,
                                                       const v1::ListUnitsRequest*,
                                                       v1::ListUnitsResponse*) {
  return RefuseUnary(runtime_, Method::kListUnits, context);
}

grpc::ServerReadReactor<v1::UploadTokensRequest>* EvaluationService::UploadTokens(
    grpc::CallbackServerContext* context, v1::UploadTokensResponse* response) {
  const CallRecord record(&runtime_.metrics, Method::kUploadTokens, &context->client_metadata());
  const auto stream =
      std::make_shared<UploadStream>(&runtime_, &jobs_->tokens(), record, context, response);
  stream->Start();
  return stream.get();
}

grpc::ServerUnaryReactor* EvaluationService::GetCapabilities(
    grpc::CallbackServerContext* context, const v1::GetCapabilitiesRequest* request,
    v1::GetCapabilitiesResponse* response) {
  return AnswerUnary(
      runtime_, Method::kGetCapabilities, context, request, response,
      [this](const v1::GetCapabilitiesRequest& get) { return jobs_->GetCapabilities(get); });
}

grpc::ServerUnaryReactor* EvaluationService::ListCheckpoints(
    grpc::CallbackServerContext* context, const v1::ListCheckpointsRequest* request,
    v1::ListCheckpointsResponse* response) {
  return AnswerUnary(
      runtime_, Method::kListCheckpoints, context, request, response,
      [this](const v1::ListCheckpointsRequest& list) { return jobs_->ListCheckpoints(list); });
}

}  // namespace hopscope::rpc

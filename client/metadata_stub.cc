#include "client/metadata_stub.h"

#include <utility>

namespace hopscope::client {
namespace {

class MetadataStub : public EvaluationStub {
 public:
  MetadataStub(std::unique_ptr<EvaluationStub> stub, CallMetadata metadata)
      : stub_(std::move(stub)), metadata_(std::move(metadata)) {}

  absl::StatusOr<v1::CreateEvalJobResponse> CreateEvalJob(
      grpc::ClientContext& context, const v1::CreateEvalJobRequest& request) override {
    return stub_->CreateEvalJob(Marked(context), request);
  }
  absl::StatusOr<v1::GetEvalJobResponse> GetEvalJob(grpc::ClientContext& context,
                                                    const v1::GetEvalJobRequest& request) override {
    return stub_->GetEvalJob(Marked(context), request);
  }
  absl::StatusOr<v1::ListEvalJobsResponse> ListEvalJobs(
      grpc::ClientContext& context, const v1::ListEvalJobsRequest& request) override {
    return stub_->ListEvalJobs(Marked(context), request);
  }
  absl::StatusOr<v1::CancelEvalJobResponse> CancelEvalJob(
      grpc::ClientContext& context, const v1::CancelEvalJobRequest& request) override {
    return stub_->CancelEvalJob(Marked(context), request);
  }
  absl::StatusOr<v1::ListEvalResultsResponse> ListEvalResults(
      grpc::ClientContext& context, const v1::ListEvalResultsRequest& request) override {
    return stub_->ListEvalResults(Marked(context), request);
  }
  absl::StatusOr<v1::GetCapabilitiesResponse> GetCapabilities(
      grpc::ClientContext& context, const v1::GetCapabilitiesRequest& request) override {
    return stub_->GetCapabilities(Marked(context), request);
  }
  absl::StatusOr<v1::ListCheckpointsResponse> ListCheckpoints(
      grpc::ClientContext& context, const v1::ListCheckpointsRequest& request) override {
    return stub_->ListCheckpoints(Marked(context), request);
  }
  absl::StatusOr<v1::UploadTokensResponse> UploadTokens(grpc::ClientContext& context,
                                                        const PieceReader& read) override {
    return stub_->UploadTokens(Marked(context), read);
  }
  std::unique_ptr<EventStream> WatchEvalJob(std::unique_ptr<grpc::ClientContext> context,
                                            const v1::WatchEvalJobRequest& request) override {
    Marked(*context);
    return stub_->WatchEvalJob(std::move(context), request);
  }

 private:
  grpc::ClientContext& Marked(grpc::ClientContext& context) const {
    if (!metadata_.tenant.empty()) context.AddMetadata("hopscope-tenant", metadata_.tenant);
    context.AddMetadata("traceparent", metadata_.trace.NewTraceparent());
    return context;
  }

  const std::unique_ptr<EvaluationStub> stub_;
  const CallMetadata metadata_;
};

}  // namespace

std::unique_ptr<EvaluationStub> MakeMetadataStub(std::unique_ptr<EvaluationStub> stub,
                                                 CallMetadata metadata) {
  return std::make_unique<MetadataStub>(std::move(stub), std::move(metadata));
}

}  // namespace hopscope::client

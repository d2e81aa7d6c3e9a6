#include "client/stub.h"

#include <utility>

#include "common/rpc/grpc_status.h"
#include "hopscope/v1/evaluation.grpc.pb.h"

namespace hopscope::client {
namespace {

class GrpcEventStream : public EventStream {
 public:
  GrpcEventStream(v1::EvaluationService::StubInterface& stub,
                  std::unique_ptr<grpc::ClientContext> context,
                  const v1::WatchEvalJobRequest& request)
      : context_(std::move(context)), reader_(stub.WatchEvalJob(context_.get(), request)) {}

  ~GrpcEventStream() override {
    if (finished_) return;
    context_->TryCancel();
    v1::WatchEvalJobResponse response;
    while (reader_->Read(&response)) {
    }
    reader_->Finish();
  }

  absl::StatusOr<std::optional<v1::EvalEvent>> Read() override {
    v1::WatchEvalJobResponse response;
    if (!finished_ && reader_->Read(&response)) return std::move(*response.mutable_event());
    if (!finished_) {
      finished_ = true;
      end_ = common::FromGrpcStatus(reader_->Finish());
    }
    if (!end_.ok()) return end_;
    return std::optional<v1::EvalEvent>();
  }

  void Cancel() override { context_->TryCancel(); }

 private:
  const std::unique_ptr<grpc::ClientContext> context_;
  const std::unique_ptr<grpc::ClientReaderInterface<v1::WatchEvalJobResponse>> reader_;
  bool finished_ = false;
  absl::Status end_;
};

class GrpcEvaluationStub : public EvaluationStub {
 public:
  explicit GrpcEvaluationStub(std::unique_ptr<v1::EvaluationService::StubInterface> stub)
      : stub_(std::move(stub)) {}

  absl::StatusOr<v1::CreateEvalJobResponse> CreateEvalJob(
      grpc::ClientContext& context, const v1::CreateEvalJobRequest& request) override {
    return Call(&v1::EvaluationService::StubInterface::CreateEvalJob, context, request);
  }
  absl::StatusOr<v1::GetEvalJobResponse> GetEvalJob(grpc::ClientContext& context,
                                                    const v1::GetEvalJobRequest& request) override {
    return Call(&v1::EvaluationService::StubInterface::GetEvalJob, context, request);
  }
  absl::StatusOr<v1::ListEvalJobsResponse> ListEvalJobs(
      grpc::ClientContext& context, const v1::ListEvalJobsRequest& request) override {
    return Call(&v1::EvaluationService::StubInterface::ListEvalJobs, context, request);
  }
  absl::StatusOr<v1::CancelEvalJobResponse> CancelEvalJob(
      grpc::ClientContext& context, const v1::CancelEvalJobRequest& request) override {
    return Call(&v1::EvaluationService::StubInterface::CancelEvalJob, context, request);
  }
  absl::StatusOr<v1::ListEvalResultsResponse> ListEvalResults(
      grpc::ClientContext& context, const v1::ListEvalResultsRequest& request) override {
    return Call(&v1::EvaluationService::StubInterface::ListEvalResults, context, request);
  }
  absl::StatusOr<v1::GetCapabilitiesResponse> GetCapabilities(
      grpc::ClientContext& context, const v1::GetCapabilitiesRequest& request) override {
    return Call(&v1::EvaluationService::StubInterface::GetCapabilities, context, request);
  }
  absl::StatusOr<v1::ListCheckpointsResponse> ListCheckpoints(
      grpc::ClientContext& context, const v1::ListCheckpointsRequest& request) override {
    return Call(&v1::EvaluationService::StubInterface::ListCheckpoints, context, request);
  }

  absl::StatusOr<v1::UploadTokensResponse> UploadTokens(grpc::ClientContext& context,
                                                        const PieceReader& read) override {
    v1::UploadTokensResponse response;
    const std::unique_ptr<grpc::ClientWriterInterface<v1::UploadTokensRequest>> writer =
        stub_->UploadTokens(&context, &response);
    absl::Status read_error;
    v1::UploadTokensRequest request;
    for (int64_t offset = 0;;) {
      absl::StatusOr<std::string> piece = read(offset);
      if (!piece.ok()) {
        read_error = piece.status();
        context.TryCancel();
        break;
      }
      if (piece->empty()) {
        writer->WritesDone();
        break;
      }
      offset += static_cast<int64_t>(piece->size());
      request.set_data(*std::move(piece));
      // The status says why a write fails.
      if (!writer->Write(request)) break;
    }
    const grpc::Status status = writer->Finish();
    if (!read_error.ok()) return read_error;
    if (!status.ok()) return common::FromGrpcStatus(status);
    return response;
  }

  std::unique_ptr<EventStream> WatchEvalJob(std::unique_ptr<grpc::ClientContext> context,
                                            const v1::WatchEvalJobRequest& request) override {
    return std::make_unique<GrpcEventStream>(*stub_, std::move(context), request);
  }

 private:
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::EvaluationService::StubInterface::*method)(
                                    grpc::ClientContext*, const Request&, Response*),
                                grpc::ClientContext& context, const Request& request) {
    Response response;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
    if (!status.ok()) return common::FromGrpcStatus(status);
    return response;
  }

  const std::unique_ptr<v1::EvaluationService::StubInterface> stub_;
};

}  // namespace

std::unique_ptr<EvaluationStub> MakeEvaluationStub(std::shared_ptr<grpc::Channel> channel) {
  return std::make_unique<GrpcEvaluationStub>(v1::EvaluationService::NewStub(std::move(channel)));
}

}  // namespace hopscope::client

// The calls of EvaluationService as plain blocking functions: what the generated code gives, with
// its statuses turned into absl::Status and nothing else. No retries, no deadlines, no metadata:
// the caller's context carries those.
#ifndef HOPSCOPE_CLIENT_STUB_H_
#define HOPSCOPE_CLIENT_STUB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::client {

// One stream of events. Read is for one thread; Cancel for any.
class EventStream {
 public:
  // Ends the stream where it has not ended.
  virtual ~EventStream() = default;

  // Blocks for the next event. Nothing: the stream ended with OK. An error is its end, too.
  virtual absl::StatusOr<std::optional<v1::EvalEvent>> Read() = 0;

  // Makes Read return CANCELLED soon.
  virtual void Cancel() = 0;
};

// The piece of a file that begins at an offset; empty: the end. May be asked for again.
using PieceReader = std::function<absl::StatusOr<std::string>(int64_t offset)>;

// Thread-safe.
class EvaluationStub {
 public:
  virtual ~EvaluationStub() = default;

  virtual absl::StatusOr<v1::CreateEvalJobResponse> CreateEvalJob(
      grpc::ClientContext& context, const v1::CreateEvalJobRequest& request) = 0;
  virtual absl::StatusOr<v1::GetEvalJobResponse> GetEvalJob(
      grpc::ClientContext& context, const v1::GetEvalJobRequest& request) = 0;
  virtual absl::StatusOr<v1::ListEvalJobsResponse> ListEvalJobs(
      grpc::ClientContext& context, const v1::ListEvalJobsRequest& request) = 0;
  virtual absl::StatusOr<v1::CancelEvalJobResponse> CancelEvalJob(
      grpc::ClientContext& context, const v1::CancelEvalJobRequest& request) = 0;
  virtual absl::StatusOr<v1::ListEvalResultsResponse> ListEvalResults(
      grpc::ClientContext& context, const v1::ListEvalResultsRequest& request) = 0;
  virtual absl::StatusOr<v1::GetCapabilitiesResponse> GetCapabilities(
      grpc::ClientContext& context, const v1::GetCapabilitiesRequest& request) = 0;
  virtual absl::StatusOr<v1::ListCheckpointsResponse> ListCheckpoints(
      grpc::ClientContext& context, const v1::ListCheckpointsRequest& request) = 0;

  // Pieces from offset 0 on. An error of the reader ends the call, and is its result.
  virtual absl::StatusOr<v1::UploadTokensResponse> UploadTokens(grpc::ClientContext& context,
                                                                const PieceReader& read) = 0;

  // The stream keeps the context.
  virtual std::unique_ptr<EventStream> WatchEvalJob(std::unique_ptr<grpc::ClientContext> context,
                                                    const v1::WatchEvalJobRequest& request) = 0;
};

// Over generated code.
std::unique_ptr<EvaluationStub> MakeEvaluationStub(std::shared_ptr<grpc::Channel> channel);

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_STUB_H_

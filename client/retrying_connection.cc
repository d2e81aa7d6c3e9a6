#include "client/retrying_connection.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/match.h"
#include "client/resuming_event_reader.h"
#include "common/rpc/grpc_status.h"
#include "common/status.h"
#include "grpcpp/client_context.h"

namespace hopscope::client {
namespace {

class RetryingConnection : public Connection {
 public:
  RetryingConnection(std::unique_ptr<EvaluationStub> stub, ConnectionOptions options)
      : stub_(std::move(stub)),
        options_(std::move(options)),
        cancellation_(options_.cancellation != nullptr ? options_.cancellation : &never_) {}

  absl::StatusOr<v1::CreateEvalJobResponse> CreateEvalJob(
      const v1::CreateEvalJobRequest& request) override {
    const bool idempotent = !request.request_id().empty() || request.validate_only();
    return Call<v1::CreateEvalJobResponse>("CreateEvalJob", options_.create_timeout, idempotent,
                                           &EvaluationStub::CreateEvalJob, request);
  }
  absl::StatusOr<v1::GetEvalJobResponse> GetEvalJob(const v1::GetEvalJobRequest& request) override {
    return Call<v1::GetEvalJobResponse>("GetEvalJob", options_.call_timeout, true,
                                        &EvaluationStub::GetEvalJob, request);
  }
  absl::StatusOr<v1::ListEvalJobsResponse> ListEvalJobs(
      const v1::ListEvalJobsRequest& request) override {
    return Call<v1::ListEvalJobsResponse>("ListEvalJobs", options_.call_timeout, true,
                                          &EvaluationStub::ListEvalJobs, request);
  }
  absl::StatusOr<v1::CancelEvalJobResponse> CancelEvalJob(
      const v1::CancelEvalJobRequest& request) override {
    return Call<v1::CancelEvalJobResponse>("CancelEvalJob", options_.call_timeout, true,
                                           &EvaluationStub::CancelEvalJob, request);
  }
  absl::StatusOr<v1::ListEvalResultsResponse> ListEvalResults(
      const v1::ListEvalResultsRequest& request) override {
    return Call<v1::ListEvalResultsResponse>("ListEvalResults", options_.call_timeout, true,
                                             &EvaluationStub::ListEvalResults, request);
  }
  absl::StatusOr<v1::GetCapabilitiesResponse> GetCapabilities(
      const v1::GetCapabilitiesRequest& request) override {
    return Call<v1::GetCapabilitiesResponse>("GetCapabilities", options_.call_timeout, true,
                                             &EvaluationStub::GetCapabilities, request);
  }
  absl::StatusOr<v1::ListCheckpointsResponse> ListCheckpoints(
      const v1::ListCheckpointsRequest& request) override {
    return Call<v1::ListCheckpointsResponse>("ListCheckpoints", options_.call_timeout, true,
                                             &EvaluationStub::ListCheckpoints, request);
  }

  // Idempotent by content.
  absl::StatusOr<v1::UploadTokensResponse> UploadTokens(const PieceReader& read) override {
    return Call<v1::UploadTokensResponse>("UploadTokens", options_.upload_timeout, true,
                                          &EvaluationStub::UploadTokens, read);
  }

  std::unique_ptr<EventReader> WatchEvalJob(const v1::WatchEvalJobRequest& request) override {
    return MakeResumingEventReader(stub_.get(), request, options_);
  }

 private:
  template <typename Response, typename Request>
  absl::StatusOr<Response> Call(
      const char* name, absl::Duration timeout, bool idempotent,
      absl::StatusOr<Response> (EvaluationStub::*method)(grpc::ClientContext&, const Request&),
      const Request& request) {
    Backoff backoff(options_.backoff, JitterSeed(options_));
    std::optional<absl::Time> first_failure;
    while (true) {
      if (IsCancelled()) return absl::CancelledError("cancelled");
      absl::StatusOr<Response> response = Try(timeout, method, request);
      if (response.ok()) return response;
      const absl::Status& error = response.status();
      if (IsCancelled()) return absl::CancelledError("cancelled");
      if (!idempotent || !IsTransient(error)) return response;
      const absl::Time now = options_.clock->Now();
      if (!first_failure.has_value()) first_failure = now;
      const absl::Duration wait =
          std::max(backoff.Next(), common::GetRetryDelay(error).value_or(absl::ZeroDuration()));
      if (now + wait > *first_failure + options_.retry_for) return response;
      if (options_.on_retry) options_.on_retry({name, error, wait});
      Pause(options_, wait, *cancellation_);
    }
  }

  template <typename Response, typename Request>
  absl::StatusOr<Response> Try(
      absl::Duration timeout,
      absl::StatusOr<Response> (EvaluationStub::*method)(grpc::ClientContext&, const Request&),
      const Request& request) {
    grpc::ClientContext context;
    // gRPC counts deadlines on the system's clock.
    context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMicroseconds(timeout));
    const Cancellation::Hook hook(cancellation_, [&context] { context.TryCancel(); });
    return (stub_.get()->*method)(context, request);
  }

  bool IsCancelled() const { return cancellation_->cancelled(); }

  const std::unique_ptr<EvaluationStub> stub_;
  const ConnectionOptions options_;
  // Stands in where the options have none.
  Cancellation never_;
  Cancellation* const cancellation_;
};

}  // namespace

bool IsTransient(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return true;
    case absl::StatusCode::kCancelled:
      // Callers have ruled out that it was asked for here.
      return true;
    case absl::StatusCode::kInternal:
      // An error that a server made has an ErrorInfo.
      return !common::GetErrorInfo(status).has_value() &&
             absl::StrContains(status.message(), "RST_STREAM");
    default:
      return false;
  }
}

void Pause(const ConnectionOptions& options, absl::Duration wait, Cancellation& cancellation) {
  if (options.pause) {
    options.pause(wait, cancellation);
  } else {
    cancellation.WaitFor(wait);
  }
}

uint64_t JitterSeed(const ConnectionOptions& options) {
  if (options.seed != 0) return options.seed;
  absl::BitGen random;
  return absl::Uniform<uint64_t>(random);
}

std::unique_ptr<Connection> MakeConnection(std::unique_ptr<EvaluationStub> stub,
                                           ConnectionOptions options) {
  return std::make_unique<RetryingConnection>(std::move(stub), std::move(options));
}

}  // namespace hopscope::client

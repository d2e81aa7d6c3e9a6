// A connection to a Hopscope server: the calls of EvaluationService, each of which either succeeds
// or fails for good.
//
// Transport is no concern of the caller: calls have deadlines, are tried again where that is safe,
// and a watch carries on after the last event it gave. Errors are those that the API documents
// (common::GetErrorInfo), and
// - UNAVAILABLE: the server could not be reached for as long as the connection's options allow;
// - DEADLINE_EXCEEDED: one try took longer than they allow;
// - CANCELLED: the connection or the reader was cancelled.
// Thread-safe.
#ifndef HOPSCOPE_CLIENT_CONNECTION_H_
#define HOPSCOPE_CLIENT_CONNECTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::client {

// The events of one job. Next is for one thread; Cancel for any.
class EventReader {
 public:
  virtual ~EventReader() = default;

  // Blocks for the next event. Durable events (sequence > 0) come exactly once and in order,
  // whatever happens to the connection; live ones (sequence 0) as they come. Nothing: the job has
  // ended and its last event was given.
  virtual absl::StatusOr<std::optional<v1::EvalEvent>> Next() = 0;

  // Makes Next return CANCELLED soon, now and later.
  virtual void Cancel() = 0;
};

class Connection {
 public:
  virtual ~Connection() = default;

  // Tried again only with a request_id, or with validate_only.
  virtual absl::StatusOr<v1::CreateEvalJobResponse> CreateEvalJob(
      const v1::CreateEvalJobRequest& request) = 0;
  virtual absl::StatusOr<v1::GetEvalJobResponse> GetEvalJob(
      const v1::GetEvalJobRequest& request) = 0;
  virtual absl::StatusOr<v1::ListEvalJobsResponse> ListEvalJobs(
      const v1::ListEvalJobsRequest& request) = 0;
  virtual absl::StatusOr<v1::CancelEvalJobResponse> CancelEvalJob(
      const v1::CancelEvalJobRequest& request) = 0;
  virtual absl::StatusOr<v1::ListEvalResultsResponse> ListEvalResults(
      const v1::ListEvalResultsRequest& request) = 0;
  virtual absl::StatusOr<v1::GetCapabilitiesResponse> GetCapabilities(
      const v1::GetCapabilitiesRequest& request) = 0;
  virtual absl::StatusOr<v1::ListCheckpointsResponse> ListCheckpoints(
      const v1::ListCheckpointsRequest& request) = 0;

  // The piece of a file that begins at an offset; empty: the end. May be asked for again.
  using PieceReader = std::function<absl::StatusOr<std::string>(int64_t offset)>;
  // An error of the reader is the result.
  virtual absl::StatusOr<v1::UploadTokensResponse> UploadTokens(const PieceReader& read) = 0;

  // The connection must outlive the reader.
  virtual std::unique_ptr<EventReader> WatchEvalJob(const v1::WatchEvalJobRequest& request) = 0;
};

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_CONNECTION_H_

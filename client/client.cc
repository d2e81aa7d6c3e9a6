#include "client/client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/trace_context.h"
#include "common/status.h"

namespace hopscope::client {
namespace {

// What servers give at most.
constexpr int64_t kLargestPage = 1000;

// A server that gives the same page again would keep a client busy for ever.
absl::Status CheckNextPage(const std::string& token, const std::string& next) {
  if (next != token || next.empty()) return absl::OkStatus();
  return common::MakeError(absl::StatusCode::kInternal, "PAGE_REPEATED",
                           "the server named the page it had just sent as the next one");
}

}  // namespace

std::string JobName(absl::string_view text) {
  return absl::StartsWith(text, "jobs/") ? std::string(text) : absl::StrCat("jobs/", text);
}

Client::Client(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

absl::StatusOr<v1::EvalJob> Client::CreateEvalJob(const v1::EvalJobSpec& spec) const {
  v1::CreateEvalJobRequest request;
  *request.mutable_spec() = spec;
  request.set_request_id(RandomUuid());
  HOPSCOPE_ASSIGN_OR_RETURN(v1::CreateEvalJobResponse response,
                            connection_->CreateEvalJob(request));
  return std::move(*response.mutable_job());
}

absl::StatusOr<v1::CreateEvalJobResponse> Client::ValidateEvalJob(
    const v1::EvalJobSpec& spec) const {
  v1::CreateEvalJobRequest request;
  *request.mutable_spec() = spec;
  request.set_validate_only(true);
  return connection_->CreateEvalJob(request);
}

absl::StatusOr<v1::EvalJob> Client::GetEvalJob(const std::string& job) const {
  v1::GetEvalJobRequest request;
  request.set_name(job);
  HOPSCOPE_ASSIGN_OR_RETURN(v1::GetEvalJobResponse response, connection_->GetEvalJob(request));
  return std::move(*response.mutable_job());
}

absl::StatusOr<std::vector<v1::EvalJob>> Client::ListEvalJobs(const std::string& filter,
                                                              int64_t limit) const {
  std::vector<v1::EvalJob> jobs;
  v1::ListEvalJobsRequest request;
  request.set_filter(filter);
  while (static_cast<int64_t>(jobs.size()) < limit) {
    const int64_t wanted = limit - static_cast<int64_t>(jobs.size());
    request.set_page_size(static_cast<int32_t>(std::min(wanted, kLargestPage)));
    HOPSCOPE_ASSIGN_OR_RETURN(v1::ListEvalJobsResponse response,
                              connection_->ListEvalJobs(request));
    for (v1::EvalJob& job : *response.mutable_jobs()) {
      if (static_cast<int64_t>(jobs.size()) < limit) jobs.push_back(std::move(job));
    }
    HOPSCOPE_RETURN_IF_ERROR(CheckNextPage(request.page_token(), response.next_page_token()));
    if (response.next_page_token().empty()) break;
    request.set_page_token(response.next_page_token());
  }
  return jobs;
}

absl::StatusOr<v1::EvalJob> Client::CancelEvalJob(const std::string& job) const {
  v1::CancelEvalJobRequest request;
  request.set_name(job);
  HOPSCOPE_ASSIGN_OR_RETURN(v1::CancelEvalJobResponse response,
                            connection_->CancelEvalJob(request));
  return std::move(*response.mutable_job());
}

absl::StatusOr<v1::UploadTokensResponse> Client::UploadTokens(
    const Connection::PieceReader& read) const {
  return connection_->UploadTokens(read);
}

std::unique_ptr<EventReader> Client::WatchEvalJob(const std::string& job,
                                                  int64_t after_sequence) const {
  v1::WatchEvalJobRequest request;
  request.set_name(job);
  request.set_after_sequence(after_sequence);
  return connection_->WatchEvalJob(request);
}

absl::Status Client::ReadEvalResults(
    const std::string& job,
    const std::function<absl::Status(const v1::ListEvalResultsResponse&)>& on_page) const {
  v1::ListEvalResultsRequest request;
  request.set_name(job);
  request.set_page_size(static_cast<int32_t>(kLargestPage));
  while (true) {
    HOPSCOPE_ASSIGN_OR_RETURN(const v1::ListEvalResultsResponse response,
                              connection_->ListEvalResults(request));
    HOPSCOPE_RETURN_IF_ERROR(on_page(response));
    HOPSCOPE_RETURN_IF_ERROR(CheckNextPage(request.page_token(), response.next_page_token()));
    if (response.next_page_token().empty()) return absl::OkStatus();
    request.set_page_token(response.next_page_token());
  }
}

absl::StatusOr<v1::GetCapabilitiesResponse> Client::GetCapabilities() const {
  return connection_->GetCapabilities({});
}

absl::StatusOr<std::vector<v1::Checkpoint>> Client::ListCheckpoints(
    const std::string& pattern) const {
  std::vector<v1::Checkpoint> checkpoints;
  v1::ListCheckpointsRequest request;
  request.set_pattern(pattern);
  request.set_page_size(static_cast<int32_t>(kLargestPage));
  while (true) {
    HOPSCOPE_ASSIGN_OR_RETURN(v1::ListCheckpointsResponse response,
                              connection_->ListCheckpoints(request));
    for (v1::Checkpoint& checkpoint : *response.mutable_checkpoints())
      checkpoints.push_back(std::move(checkpoint));
    HOPSCOPE_RETURN_IF_ERROR(CheckNextPage(request.page_token(), response.next_page_token()));
    if (response.next_page_token().empty()) return checkpoints;
    request.set_page_token(response.next_page_token());
  }
}

}  // namespace hopscope::client

#include "common/rpc/grpc_status.h"

#include <string>

#include "absl/strings/cord.h"
#include "common/status.h"
#include "common/utf8.h"
#include "google/protobuf/util/time_util.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace hopscope::common {
namespace {

using google::protobuf::util::TimeUtil;

constexpr absl::string_view kRetryInfoUrl = "type.googleapis.com/google.rpc.RetryInfo";

// Longest ErrorInfo. Base64 makes 4/3 of it, and the message travels twice: here, and
// percent-encoded.
constexpr size_t kMaxErrorInfoBytes = 1536;
// Longest reason that google.rpc.ErrorInfo allows.
constexpr size_t kMaxReasonBytes = 63;

bool IsServerFault(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal || code == absl::StatusCode::kUnknown ||
         code == absl::StatusCode::kDataLoss;
}

// Cuts values to the largest of 1024, 512, ... bytes with which the whole fits.
void FitOnWire(google::rpc::ErrorInfo& info) {
  info.set_reason(std::string(CutUtf8(info.reason(), kMaxReasonBytes)));
  for (size_t limit = 1024; info.ByteSizeLong() > kMaxErrorInfoBytes && limit > 0; limit /= 2) {
    for (auto& [key, value] : *info.mutable_metadata()) {
      value.resize(CutUtf8(value, limit).size());
    }
  }
  if (info.ByteSizeLong() > kMaxErrorInfoBytes) info.clear_metadata();
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const std::string whole_message = ReplaceInvalidUtf8(status.message());
  const absl::string_view message = CutUtf8(whole_message, kMaxErrorMessageBytes);

  google::rpc::ErrorInfo info;
  if (std::optional<google::rpc::ErrorInfo> own = GetErrorInfo(status); own.has_value()) {
    info = *std::move(own);
    if (IsServerFault(status.code())) info.clear_metadata();
    FitOnWire(info);
  } else {
    info.set_reason(ErrorReason(status));
    info.set_domain(std::string(kErrorDomain));
  }
  google::rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(std::string(message));
  details.add_details()->PackFrom(info);
  if (const std::optional<absl::Duration> delay = GetRetryDelay(status); delay.has_value()) {
    google::rpc::RetryInfo retry;
    *retry.mutable_retry_delay() =
        TimeUtil::NanosecondsToDuration(absl::ToInt64Nanoseconds(*delay));
    details.add_details()->PackFrom(retry);
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(message),
                      details.SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status details;
  if (status.error_details().empty() || !details.ParseFromString(status.error_details()) ||
      details.code() != status.error_code()) {
    return result;
  }
  for (const google::protobuf::Any& detail : details.details()) {
    result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return result;
}

absl::Status WithRetryDelay(absl::Status status, absl::Duration delay) {
  google::rpc::RetryInfo retry;
  *retry.mutable_retry_delay() = TimeUtil::NanosecondsToDuration(absl::ToInt64Nanoseconds(delay));
  status.SetPayload(kRetryInfoUrl, absl::Cord(retry.SerializeAsString()));
  return status;
}

std::optional<absl::Duration> GetRetryDelay(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryInfoUrl);
  google::rpc::RetryInfo retry;
  if (!payload.has_value() || !retry.ParseFromString(std::string(*payload))) return std::nullopt;
  return absl::Nanoseconds(TimeUtil::DurationToNanoseconds(retry.retry_delay()));
}

}  // namespace hopscope::common

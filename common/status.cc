#include "common/status.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/utf8.h"

namespace hopscope::common {
namespace {

constexpr absl::string_view kErrorInfoUrl = "type.googleapis.com/google.rpc.ErrorInfo";

}  // namespace

absl::Status MakeError(absl::StatusCode code, absl::string_view reason, absl::string_view message,
                       const ErrorMetadata& metadata) {
  absl::Status status(code, ReplaceInvalidUtf8(message));
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason));
  info.set_domain(std::string(kErrorDomain));
  for (const auto& [key, value] : metadata) {
    (*info.mutable_metadata())[ReplaceInvalidUtf8(key)] = ReplaceInvalidUtf8(value);
  }
  status.SetPayload(kErrorInfoUrl, absl::Cord(info.SerializeAsString()));
  return status;
}

absl::Status InvalidField(absl::string_view reason, absl::string_view field,
                          absl::string_view value, absl::string_view allowed) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason,
                   absl::StrCat(field, ": ", value, " is not allowed; ", allowed),
                   {{"field", std::string(field)},
                    {"value", std::string(value)},
                    {"allowed", std::string(allowed)}});
}

std::optional<google::rpc::ErrorInfo> GetErrorInfo(const absl::Status& status) {
  const auto payload = status.GetPayload(kErrorInfoUrl);
  google::rpc::ErrorInfo info;
  if (!payload.has_value() || !info.ParseFromString(std::string(*payload))) return std::nullopt;
  return info;
}

std::string ErrorReason(const absl::Status& status) {
  const std::optional<google::rpc::ErrorInfo> info = GetErrorInfo(status);
  return info.has_value() ? info->reason() : absl::StatusCodeToString(status.code());
}

absl::Status Annotate(const absl::Status& status, absl::string_view prefix) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(prefix, ": ", status.message()));
  status.ForEachPayload([&annotated](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

}  // namespace hopscope::common

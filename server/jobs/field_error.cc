#include "server/jobs/field_error.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace hopscope::jobs {

absl::Status AtField(const absl::Status& status, absl::string_view field) {
  const std::optional<google::rpc::ErrorInfo> info = common::GetErrorInfo(status);
  common::ErrorMetadata metadata;
  if (info.has_value()) {
    for (const auto& [key, value] : info->metadata()) {
      if (key != "field") metadata.emplace_back(key, value);
    }
  }
  metadata.emplace_back("field", std::string(field));
  return common::MakeError(status.code(), common::ErrorReason(status),
                           absl::StrCat(field, ": ", status.message()), metadata);
}

}  // namespace hopscope::jobs

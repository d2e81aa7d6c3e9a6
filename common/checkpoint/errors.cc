#include "common/checkpoint/errors.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace hopscope::checkpoint {

absl::Status BrokenCheckpoint(absl::string_view reason, absl::string_view message,
                              const common::ErrorMetadata& metadata) {
  return common::MakeError(absl::StatusCode::kFailedPrecondition, reason, message, metadata);
}

absl::Status MissingFile(absl::string_view reason, absl::string_view message,
                         const common::ErrorMetadata& metadata) {
  return common::MakeError(absl::StatusCode::kNotFound, reason, message, metadata);
}

std::string Quoted(absl::string_view text) {
  constexpr size_t kLongest = 120;
  if (text.size() <= kLongest) return absl::StrCat("'", absl::CHexEscape(text), "'");
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kLongest)), "...' (", text.size(),
                      " bytes)");
}

}  // namespace hopscope::checkpoint

// How this folder reports a broken checkpoint: FAILED_PRECONDITION (NOT_FOUND where a folder or
// file is missing) with one reason per kind of breakage. README.md lists the reasons.
#ifndef HOPSCOPE_COMMON_CHECKPOINT_ERRORS_H_
#define HOPSCOPE_COMMON_CHECKPOINT_ERRORS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/status.h"

namespace hopscope::checkpoint {

// FAILED_PRECONDITION with `reason`.
absl::Status BrokenCheckpoint(absl::string_view reason, absl::string_view message,
                              const common::ErrorMetadata& metadata = {});

// NOT_FOUND with `reason`.
absl::Status MissingFile(absl::string_view reason, absl::string_view message,
                         const common::ErrorMetadata& metadata = {});

// `text` for a message: cut to 120 bytes, in quotes, everything but printable ASCII escaped. What
// stands in a checkpoint's files is not ours, and may be neither short nor UTF-8.
std::string Quoted(absl::string_view text);

}  // namespace hopscope::checkpoint

#endif  // HOPSCOPE_COMMON_CHECKPOINT_ERRORS_H_

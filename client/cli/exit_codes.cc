#include "client/cli/exit_codes.h"

#include <string>

#include "absl/strings/match.h"
#include "common/status.h"

namespace hopscope::cli {
namespace {

// Whether somebody has to change the command line or a file, whatever the code says: a checkpoint
// that a spec names and that is not there is NOT_FOUND.
bool IsAboutInput(const absl::Status& status) {
  const auto info = common::GetErrorInfo(status);
  if (!info.has_value()) return false;
  if (info->reason() == "FILE_NOT_FOUND" || info->reason() == "FILE_UNREADABLE") return true;
  const auto field = info->metadata().find("field");
  if (field == info->metadata().end()) return false;
  return field->second == "spec" || absl::StartsWith(field->second, "spec.") ||
         absl::StartsWith(field->second, "--");
}

}  // namespace

absl::Status OutputLostError() {
  return common::MakeError(absl::StatusCode::kAborted, kOutputLost,
                           "standard output cannot be written");
}

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
      return kExitUsage;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kExitUnavailable;
    case absl::StatusCode::kCancelled:
      return kExitInterrupted;
    default:
      if (common::ErrorReason(status) == kOutputLost) return kExitNoReader;
      return IsAboutInput(status) ? kExitUsage : kExitError;
  }
}

ExitCode ExitCodeOf(v1::EvalJob::State state) {
  switch (state) {
    case v1::EvalJob::STATE_SUCCEEDED:
      return kExitOk;
    case v1::EvalJob::STATE_FAILED:
      return kExitJobFailed;
    case v1::EvalJob::STATE_PARTIALLY_SUCCEEDED:
      return kExitJobPartial;
    case v1::EvalJob::STATE_CANCELLED:
      return kExitJobCancelled;
    default:
      return kExitError;
  }
}

}  // namespace hopscope::cli

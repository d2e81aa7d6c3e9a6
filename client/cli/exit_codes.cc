#include "client/cli/exit_codes.h"

namespace hopscope::cli {

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
      return kExitError;
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

// What `hopscope` tells the shell; `hopscope run --help` lists the same.
#ifndef HOPSCOPE_CLIENT_CLI_EXIT_CODES_H_
#define HOPSCOPE_CLIENT_CLI_EXIT_CODES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::cli {

enum ExitCode : int {
  // Done; of a job that was followed: it succeeded.
  kExitOk = 0,
  // Any error that is none of those below.
  kExitError = 1,
  // The command line, the spec or another input is wrong.
  kExitUsage = 2,
  // The job that was followed failed,
  kExitJobFailed = 3,
  // succeeded in part: some of its cells failed,
  kExitJobPartial = 4,
  // or was cancelled.
  kExitJobCancelled = 5,
  // The server cannot be reached, or did not answer in time.
  kExitUnavailable = 6,
  // Ctrl-C ended the command, as shells count it.
  kExitInterrupted = 130,
  // Whoever read standard output went away before the end, as shells count SIGPIPE.
  kExitNoReader = 141,
};

// By its code; where it is about a field of the spec, a flag or an input file: kExitUsage.
ExitCode ExitCodeOf(const absl::Status& status);

// Why a command stops whose standard output cannot be written any more. RunApp says so at the end,
// once for all commands; ReportError does not.
inline constexpr absl::string_view kOutputLost = "OUTPUT_LOST";
absl::Status OutputLostError();

// `state` is a final one.
ExitCode ExitCodeOf(v1::EvalJob::State state);

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_EXIT_CODES_H_

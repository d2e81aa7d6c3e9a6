// Says what went wrong, and what to do about it.
#ifndef HOPSCOPE_CLIENT_CLI_ERROR_REPORT_H_
#define HOPSCOPE_CLIENT_CLI_ERROR_REPORT_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/console.h"
#include "client/cli/exit_codes.h"

namespace hopscope::cli {

struct ErrorContext {
  // Address that the command used; empty where it used none yet.
  std::string server;
  // Whether the error is to be printed as JSON on standard output, too.
  bool json = false;
};

// "error: ..." and, where there is one, a line "hint: ...". `status` is not OK.
std::string ErrorText(const absl::Status& status, const std::string& server);

// Prints it, and returns the exit code that goes with it. A command that Ctrl-C ended says nothing,
// nor here does one whose standard output is lost.
ExitCode ReportError(const absl::Status& status, const ErrorContext& context, Console& console);

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_ERROR_REPORT_H_

#include "client/cli/error_report.h"

#include "absl/strings/str_cat.h"
#include "client/cli/json_text.h"
#include "common/status.h"

namespace hopscope::cli {
namespace {

std::string HintFor(const absl::Status& status, const std::string& server) {
  const std::string reason = common::ErrorReason(status);
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      // A server that answers says itself what is wrong with it.
      if (server.empty() || common::GetErrorInfo(status).has_value()) return "";
      return absl::StrCat(
          "is a server running at ", server,
          "? Start one with: hopscope-server --model_root DIR --state_dir DIR\n"
          "      or name another with --server HOST:PORT (or $HOPSCOPE_SERVER),\n"
          "      or let the command start one for itself: hopscope run --local SPEC.yaml");
    case absl::StatusCode::kDeadlineExceeded:
      return server.empty()
                 ? ""
                 : absl::StrCat("the server at ", server, " took too long to answer; try again");
    case absl::StatusCode::kUnimplemented:
      return "the server does not know this call; is it older than this program? Compare: hopscope "
             "--version, "
             "hopscope-server --version";
    case absl::StatusCode::kNotFound:
      return reason == "JOB_NOT_FOUND" ? "hopscope list shows the jobs that there are" : "";
    default:
      return "";
  }
}

}  // namespace

std::string ErrorText(const absl::Status& status, const std::string& server) {
  std::string message(status.message());
  if (absl::IsUnavailable(status) && !server.empty() && !common::GetErrorInfo(status).has_value()) {
    // gRPC's own message is long, and says the cause last.
    const size_t cause = message.rfind(": ");
    if (cause != std::string::npos) message = message.substr(cause + 2);
    message = absl::StrCat("cannot reach the server at ", server, " (", message, ")");
  }
  if (message.empty()) message = absl::StatusCodeToString(status.code());
  const std::string hint = HintFor(status, server);
  return absl::StrCat("error: ", message, hint.empty() ? "" : absl::StrCat("\nhint: ", hint));
}

ExitCode ReportError(const absl::Status& status, const ErrorContext& context, Console& console) {
  const ExitCode code = ExitCodeOf(status);
  if (code == kExitInterrupted || common::ErrorReason(status) == kOutputLost) return code;
  if (context.json) console.PrintLine(ErrorJson(status));
  console.Message(ErrorText(status, context.server), Console::Tone::kError);
  return code;
}

}  // namespace hopscope::cli

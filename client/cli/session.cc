#include "client/cli/session.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/error_report.h"
#include "client/connect.h"
#include "common/status.h"

namespace hopscope::cli {
namespace {

constexpr char kDefaultServer[] = "127.0.0.1:7070";
// Somebody waits in front of the terminal.
constexpr absl::Duration kRetryFor = absl::Seconds(5);
constexpr absl::Duration kNoticeInterval = absl::Seconds(30);
constexpr int kDefaultTableWidth = 100;

std::string FirstSet(std::initializer_list<std::string> values) {
  for (const std::string& value : values) {
    if (!value.empty()) return value;
  }
  return "";
}

}  // namespace

void CommonOptions::AddTo(CLI::App& app) {
  app.add_option("--server", server,
                 "Address of the server (default: $HOPSCOPE_SERVER, else 127.0.0.1:7070)")
      ->type_name("HOST:PORT");
  app.add_flag("--allow_insecure", allow_insecure, "Use plain text to a server on another machine");
  app.add_option("--tenant", tenant,
                 "Whom the work counts for (default: $HOPSCOPE_TENANT, else the spec's)")
      ->type_name("NAME");
  app.add_flag("--json", json, "Print JSON, one value a line; messages go to standard error");
}

Session::Session(const Environment& environment, const CommonOptions& options)
    : environment_(environment),
      options_(options),
      server_(FirstSet({options.server, environment.getenv("HOPSCOPE_SERVER"), kDefaultServer})),
      console_(environment.console),
      interrupts_(environment.interrupts, &cancellation_) {}

absl::StatusOr<client::Client> Session::Connect(const std::string& spec_tenant) {
  client::ConnectOptions options;
  options.server = server_;
  options.allow_insecure = options_.allow_insecure;
  options.metadata.tenant =
      FirstSet({options_.tenant, environment_.getenv("HOPSCOPE_TENANT"), spec_tenant});
  options.connection.cancellation = &cancellation_;
  options.connection.clock = environment_.clock;
  options.connection.retry_for = kRetryFor;
  options.connection.on_retry = [this](const client::RetryNotice& notice) { TellOfRetry(notice); };
  HOPSCOPE_ASSIGN_OR_RETURN(std::shared_ptr<client::Connection> connection,
                            environment_.connect(std::move(options)));
  return client::Client(std::move(connection));
}

ExitCode Session::Fail(const absl::Status& status) {
  return ReportError(status, {.server = server_, .json = options_.json}, console_);
}

size_t Session::table_width() const {
  int columns = environment_.out_columns ? environment_.out_columns() : 0;
  // A shell that pipes the output on to a terminal can say how wide that is.
  if (columns <= 0 && !absl::SimpleAtoi(environment_.getenv("COLUMNS"), &columns)) {
    columns = kDefaultTableWidth;
  }
  return static_cast<size_t>(std::clamp(columns, 60, 200));
}

void Session::TellOfRetry(const client::RetryNotice& notice) {
  {
    common::MutexLock lock(&mutex_);
    const absl::Time now = environment_.clock->Now();
    if (last_notice_.has_value() && now < *last_notice_ + kNoticeInterval) return;
    last_notice_ = now;
  }
  // A server that answers says itself what is wrong with it.
  if (common::GetErrorInfo(notice.error).has_value()) {
    console_.Message(absl::StrCat("the server at ", server_,
                                  " is not ready: ", notice.error.message(), "; trying again"),
                     Console::Tone::kWarning);
    return;
  }
  const absl::string_view what =
      notice.method == "WatchEvalJob" ? "lost the connection to " : "no answer from ";
  console_.Message(absl::StrCat(what, server_, "; trying again"), Console::Tone::kWarning);
}

}  // namespace hopscope::cli

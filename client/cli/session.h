// What every command does around its own work: finds the server, connects, listens to Ctrl-C, and
// reports errors.
#ifndef HOPSCOPE_CLIENT_CLI_SESSION_H_
#define HOPSCOPE_CLIENT_CLI_SESSION_H_

#include <optional>
#include <string>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cancellation.h"
#include "client/cli/command_interrupts.h"
#include "client/cli/console.h"
#include "client/cli/environment.h"
#include "client/cli/exit_codes.h"
#include "client/client.h"
#include "common/mutex.h"

namespace hopscope::cli {

// Options that commands have in common.
struct CommonOptions {
  // Empty: $HOPSCOPE_SERVER, else 127.0.0.1:7070.
  std::string server;
  bool allow_insecure = false;
  // Empty: $HOPSCOPE_TENANT, else the spec's.
  std::string tenant;
  bool json = false;

  void AddTo(CLI::App& app);
};

class Session {
 public:
  // `environment` must outlive it.
  Session(const Environment& environment, const CommonOptions& options);

  Console& console() { return console_; }
  CommandInterrupts& interrupts() { return interrupts_; }
  client::Cancellation& cancellation() { return cancellation_; }
  bool json() const { return options_.json; }
  const std::string& server() const { return server_; }

  // Uses another server than the options say: the one that --local started.
  void UseServer(const std::string& address) { server_ = address; }

  // `spec_tenant`: whom a spec says that it is for. The session must outlive the client.
  absl::StatusOr<client::Client> Connect(const std::string& spec_tenant = "");

  // Reports an error and returns the exit code that goes with it.
  ExitCode Fail(const absl::Status& status);

  // Columns for tables on standard output: the terminal's, else $COLUMNS, both within reason; else
  // 100.
  size_t table_width() const;

 private:
  // Says, but not each time, that a call is tried again.
  void TellOfRetry(const client::RetryNotice& notice);

  const Environment& environment_;
  const CommonOptions options_;
  std::string server_;
  Console console_;
  client::Cancellation cancellation_;
  CommandInterrupts interrupts_;
  common::Mutex mutex_;
  std::optional<absl::Time> last_notice_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_SESSION_H_

// hopscope-server: reads flags, starts a Server, and stops it on SIGTERM or SIGINT.
#include <pthread.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/command_line.h"
#include "common/logging.h"
#include "common/ready_file.h"
#include "common/rpc/grpc_log.h"
#include "common/rpc/protobuf_log.h"
#include "common/status.h"
#include "common/version.h"
#include "server/server.h"

namespace {

using ::hopscope::server::Server;

constexpr int kExitConfiguration = 2;

constexpr char kDescription[] = R"(Examples:
  hopscope-server --model_root checkpoints
      Serves this machine: gRPC on 127.0.0.1:7070, /metrics, /livez and /readyz on 127.0.0.1:7071.
  hopscope-server --model_root /models --state_dir /var/lib/hopscope --listen 0.0.0.0:7070 \
      --metrics_listen 0.0.0.0:7071 --allow_insecure --log_format json
      Serves a trusted network: nothing is encrypted or authenticated.
  hopscope-server --model_root checkpoints --listen 127.0.0.1:0 --metrics_listen 127.0.0.1:0 \
      --ready_file ready.json
      Lets the system choose the ports, and writes them to ready.json once it serves.

Takes evaluation jobs, gives their units to hopscope-worker processes, and keeps jobs, events and
results in a database. SIGTERM or SIGINT stops it: no new jobs, watchers are told to connect again,
calls in progress get --shutdown_grace. A second signal ends it at once; nothing that was
acknowledged is lost.)";

// $XDG_STATE_HOME/hopscope, or ~/.local/state/hopscope; empty where neither variable is set.
std::string DefaultStateDir() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && state[0] == '/') {
    return absl::StrCat(state, "/hopscope");
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    return absl::StrCat(home, "/.local/state/hopscope");
  }
  return "";
}

int ConfigurationError(absl::string_view message) {
  std::fprintf(stderr, "hopscope-server: %.*s\n", static_cast<int>(message.size()), message.data());
  return kExitConfiguration;
}

absl::StatusOr<absl::Duration> ParseDurationFlag(absl::string_view flag, const std::string& text) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) || duration < absl::ZeroDuration()) {
    return hopscope::common::InvalidField("BAD_FLAG", flag, text,
                                          "give a duration such as 500ms, 30s or 2m");
  }
  return duration;
}

}  // namespace

int main(int argc, char** argv) {
  Server::Options options;
  options.state_dir = DefaultStateDir();
  std::string lease_duration = "30s";
  std::string shutdown_grace = "10s";
  std::string log_format = "text";
  std::string log_level = "info";
  std::string ready_file;

  CLI::App app(kDescription, "hopscope-server");
  app.set_version_flag("--version", hopscope::common::VersionText("hopscope-server"));
  app.get_formatter()->column_width(36);
  app.option_defaults()->always_capture_default();
  app.add_option("--model_root", options.model_root, "Folder that checkpoints live under")
      ->type_name("DIR");
  app.add_option("--state_dir", options.state_dir,
                 "Folder of the database, made where it is missing; one server at a time")
      ->type_name("DIR");
  app.add_option("--listen", options.listen, "Address of gRPC; port 0: the system chooses one")
      ->type_name("HOST:PORT");
  app.add_option(
         "--metrics_listen", options.metrics_listen,
         "Address of /metrics, /livez and /readyz; port 0: the system chooses one; empty: none")
      ->type_name("HOST:PORT");
  app.add_flag("--allow_insecure", options.allow_insecure,
               "Let --listen be an address that other machines reach, though nothing is encrypted "
               "or authenticated");
  app.add_option("--lease_duration", lease_duration,
                 "A worker that sends no heartbeat for so long is lost, and its units go to others")
      ->type_name("DURATION");
  app.add_option("--max_attempts", options.max_attempts,
                 "Attempts at a unit before it fails for good")
      ->type_name("N");
  app.add_option("--shutdown_grace", shutdown_grace, "Time that calls in progress get at the end")
      ->type_name("DURATION");
  app.add_flag("--reflection,!--no_reflection", options.reflection, "Serve gRPC reflection");
  app.add_option("--ready_file", ready_file,
                 "Write the addresses there as JSON once the server serves")
      ->type_name("FILE");
  app.add_option("--log_format", log_format, "text or json, to standard error")
      ->type_name("FORMAT");
  app.add_option("--log_level", log_level, "debug, info, warning or error")->type_name("LEVEL");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    return ConfigurationError(absl::StrCat(hopscope::common::CommandLineErrorText(app, error),
                                           "; see hopscope-server --help"));
  }

  const auto log_options = hopscope::common::ParseLogOptions(log_format, log_level);
  if (!log_options.ok()) return ConfigurationError(log_options.status().message());
  const auto lease = ParseDurationFlag("--lease_duration", lease_duration);
  if (!lease.ok()) return ConfigurationError(lease.status().message());
  const auto grace = ParseDurationFlag("--shutdown_grace", shutdown_grace);
  if (!grace.ok()) return ConfigurationError(grace.status().message());
  options.lease_duration = *lease;
  hopscope::common::SetUpLogging(*log_options);
  hopscope::common::RouteGrpcLog();
  hopscope::common::RouteProtobufLog();

  // Blocked in every thread, and taken by sigwait below: nothing ever runs in a signal handler.
  sigset_t stop_signals;
  sigemptyset(&stop_signals);
  sigaddset(&stop_signals, SIGTERM);
  sigaddset(&stop_signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(std::move(options));
  if (!server.ok()) return ConfigurationError(server.status().message());
  if (!ready_file.empty()) {
    const absl::Status written = hopscope::common::WriteReadyFile(
        ready_file,
        {{"listen", (*server)->address()}, {"metrics_listen", (*server)->metrics_address()}});
    if (!written.ok()) return ConfigurationError(written.message());
  }
  hopscope::common::Log(spdlog::level::info, "serving",
                        {{"listen", (*server)->address()},
                         {"metrics_listen", (*server)->metrics_address()},
                         {"version", hopscope::common::VersionString()}});

  int signal_number = 0;
  sigwait(&stop_signals, &signal_number);
  // From here on a signal does what it does by default.
  pthread_sigmask(SIG_UNBLOCK, &stop_signals, nullptr);
  hopscope::common::Log(spdlog::level::info, "shutting down",
                        {{"signal", signal_number == SIGTERM ? "SIGTERM" : "SIGINT"}});
  (*server)->Shutdown(*grace);
  server->reset();
  hopscope::common::Log(spdlog::level::info, "stopped");
  return 0;
}

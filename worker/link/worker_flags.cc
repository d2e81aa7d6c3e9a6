#include "worker/link/worker_flags.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/status.h"

namespace hopscope::link {
namespace {

constexpr int kMaxPrefetchMs = 600'000;

}  // namespace

void AddWorkerFlags(CLI::App* app, WorkerFlags* flags) {
  const char* server = std::getenv("HOPSCOPE_SERVER");
  flags->server = server != nullptr && server[0] != '\0' ? server : "127.0.0.1:7070";
  app->option_defaults()->always_capture_default();
  app->add_option("--server", flags->server,
                  "Address of hopscope-server's gRPC; the default is $HOPSCOPE_SERVER, else "
                  "127.0.0.1:7070")
      ->type_name("HOST:PORT");
  app->add_option("--model_root", flags->model_root,
                  "Folder that checkpoints live under, with the same content as the server's")
      ->type_name("DIR");
  app->add_option("--device", flags->device,
                  "auto, cpu or cuda:N; auto takes the first GPU where there is one")
      ->type_name("DEVICE");
  app->add_option("--threads", flags->threads,
                  "Threads that compute; 0: one for each processor that the process may use. "
                  "Results do not depend on it")
      ->type_name("N");
  app->add_option("--metrics_listen", flags->metrics_listen,
                  "Address of /metrics, /livez and /readyz; port 0: the system chooses one. None "
                  "by default, so that several workers fit on one machine")
      ->type_name("HOST:PORT");
  app->add_option("--prefetch_ms", flags->prefetch_ms,
                  "Hold units for so much work beyond those that run; 0: none")
      ->type_name("MS");
  app->add_option("--grace", flags->grace,
                  "After SIGTERM or SIGINT, units that still run after so long are handed back")
      ->type_name("DURATION");
  app->add_flag("--allow_insecure", flags->allow_insecure,
                "Let --server be on another machine, though nothing is encrypted or authenticated");
  app->add_option("--ready_file", flags->ready_file,
                  "Write the worker's id and metrics address there as JSON once it is registered")
      ->type_name("FILE");
  app->add_option("--log_format", flags->log_format, "text or json, to standard error")
      ->type_name("FORMAT");
  app->add_option("--log_level", flags->log_level, "debug, info, warning or error")
      ->type_name("LEVEL");
}

absl::StatusOr<WorkerSettings> CheckWorkerFlags(const WorkerFlags& flags) {
  WorkerSettings settings;
  HOPSCOPE_ASSIGN_OR_RETURN(settings.log,
                            common::ParseLogOptions(flags.log_format, flags.log_level));
  HOPSCOPE_ASSIGN_OR_RETURN(const common::HostPort server,
                            common::ParseHostPort("--server", flags.server));
  if (server.port == 0) {
    return common::InvalidField("BAD_ADDRESS", "--server", flags.server,
                                "give the port that hopscope-server listens on, such as 7070");
  }
  if (!flags.allow_insecure && !common::IsLoopback(server.host)) {
    return common::MakeError(
        absl::StatusCode::kFailedPrecondition, "INSECURE_ADDRESS",
        absl::StrCat("--server: ", flags.server,
                     " is not this machine, and the connection is neither encrypted nor "
                     "authenticated; pass --allow_insecure where the network is trusted"),
        {{"field", "--server"}, {"value", flags.server}});
  }
  settings.server = server.ToString();
  if (flags.model_root.empty()) {
    return common::MakeError(absl::StatusCode::kInvalidArgument, "FLAG_MISSING",
                             "--model_root is missing: give the folder that checkpoints live under",
                             {{"field", "--model_root"}});
  }
  if (flags.prefetch_ms < 0 || flags.prefetch_ms > kMaxPrefetchMs) {
    return common::InvalidField("BAD_FLAG", "--prefetch_ms", absl::StrCat(flags.prefetch_ms),
                                absl::StrCat("give 0 to ", kMaxPrefetchMs));
  }
  settings.prefetch = absl::Milliseconds(flags.prefetch_ms);
  if (!absl::ParseDuration(flags.grace, &settings.grace) || settings.grace < absl::ZeroDuration()) {
    return common::InvalidField("BAD_FLAG", "--grace", flags.grace,
                                "give a duration such as 500ms, 30s or 2m");
  }
  return settings;
}

}  // namespace hopscope::link

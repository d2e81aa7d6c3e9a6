#include "client/cli/local_options.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/number_text.h"
#include "common/status.h"

namespace hopscope::cli {

void LocalOptions::AddTo(CLI::App& app, bool with_workers) {
  CLI::Option* flag = app.add_flag(
      "--local", local,
      with_workers ? "Start a server and workers on this machine for the time of the command"
                   : "Start a server on this machine for the time of the command");
  app.add_option("--model_root", model_root,
                 "With --local: folder that checkpoints are under\n(default: $HOPSCOPE_MODEL_ROOT, "
                 "else this folder)")
      ->type_name("DIR")
      ->needs(flag);
  if (!with_workers) return;
  app.add_option("--workers", workers, "With --local: how many workers (default: 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 256))
      ->needs(flag);
  app.add_option(
         "--threads", threads,
         "With --local: CPU threads of each worker\n(default: those of the machine, shared evenly)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096))
      ->needs(flag);
  app.add_option("--device", device, "With --local: auto, cpu or cuda:N (default: auto)")
      ->type_name("D")
      ->needs(flag);
}

absl::StatusOr<std::unique_ptr<LocalCluster>> StartLocal(const Environment& environment,
                                                         const LocalOptions& options, int workers,
                                                         Session& session) {
  LocalClusterOptions cluster;
  FindPrograms(environment.getenv, &cluster);
  cluster.model_root = options.model_root;
  if (cluster.model_root.empty()) cluster.model_root = environment.getenv("HOPSCOPE_MODEL_ROOT");
  if (cluster.model_root.empty()) cluster.model_root = ".";
  cluster.workers = workers;
  cluster.threads = options.threads;
  cluster.device = options.device;
  cluster.cancellation = &session.cancellation();
  cluster.on_message = [&session](const std::string& message) {
    session.console().Message(message, Console::Tone::kWarning);
  };
  session.console().Message(absl::StrCat(
      "starting a server", workers > 0 ? absl::StrCat(" and ", Counted(workers, "worker")) : "",
      " on this machine"));
  HOPSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<LocalCluster> started,
                            environment.start_local_cluster(std::move(cluster)));
  session.UseServer(started->address());
  return started;
}

}  // namespace hopscope::cli

#include "worker/link/worker_program.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/logging.h"
#include "common/mutex.h"
#include "common/ops/ops_server.h"
#include "common/ready_file.h"
#include "common/rpc/grpc_log.h"
#include "common/rpc/protobuf_log.h"
#include "common/status.h"
#include "common/version.h"
#include "worker/link/grpc_dispatch_stub.h"
#include "worker/link/termination_signals.h"
#include "worker/link/tokens_fetcher.h"
#include "worker/link/worker_loop.h"
#include "worker/link/worker_metrics.h"

namespace hopscope::link {
namespace {

// Stops a loop that may not exist yet.
class StopSwitch {
 public:
  void Stop() {
    common::MutexLock lock(&mutex_);
    stopped_ = true;
    if (loop_ != nullptr) loop_->RequestStop();
  }
  // Null: there is none any more.
  void SetLoop(WorkerLoop* loop) {
    common::MutexLock lock(&mutex_);
    loop_ = loop;
    if (stopped_ && loop_ != nullptr) loop_->RequestStop();
  }

 private:
  common::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  WorkerLoop* loop_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

uint64_t RandomBits() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

v1::WorkerDescription Describe(const engine::Engine& engine) {
  v1::WorkerDescription description;
  engine.Describe(&description);
  std::array<char, 256> host = {};
  // Truncation may leave out the terminating zero: the last element is never written.
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  description.set_host(host.data());
  description.set_pid(getpid());
  *description.mutable_version() = common::ProgramVersion();
  return description;
}

WorkerLoop::Options LoopOptions(const WorkerSettings& settings,
                                const v1::WorkerDescription& description) {
  WorkerLoop::Options options;
  options.worker_id = absl::StrCat("workers/", absl::StrFormat("%016x", RandomBits()));
  options.description = description;
  options.prefetch = settings.prefetch;
  options.grace = settings.grace;
  options.session.seed = RandomBits();
  options.leaser.seed = RandomBits();
  options.reporter.seed = RandomBits();
  return options;
}

// Where nothing can be waited for any more.
[[noreturn]] void ExitNow(int code) {
  spdlog::default_logger_raw()->flush();
  std::_Exit(code);
}

}  // namespace

int ExitWithMessage(absl::string_view program, const absl::Status& error, int code) {
  absl::FPrintF(stderr, "%s: %s\n", program, error.message());
  return code;
}

int RunWorkerProgram(absl::string_view program, const WorkerFlags& flags,
                     const EngineMaker& make_engine) {
  const absl::StatusOr<WorkerSettings> settings = CheckWorkerFlags(flags);
  if (!settings.ok()) return ExitWithMessage(program, settings.status(), kExitConfiguration);
  common::SetUpLogging(settings->log);
  common::RouteGrpcLog();
  common::RouteProtobufLog();
  TerminationSignals::Block();
  signal(SIGPIPE, SIG_IGN);
  StopSwitch stop;
  TerminationSignals signals([&stop](int) { stop.Stop(); });

  const absl::StatusOr<std::unique_ptr<engine::Engine>> engine = make_engine();
  if (!engine.ok()) return ExitWithMessage(program, engine.status(), kExitConfiguration);
  const v1::WorkerDescription description = Describe(**engine);
  const common::Clock* const clock = common::Clock::Real();
  const auto metrics = std::make_shared<WorkerMetrics>(description, engine->get(), clock);
  const std::unique_ptr<DispatchStub> stub =
      MakeGrpcDispatchStub(MakeDispatchChannel(settings->server));

  // Outlives the runs: the loop ends before it.
  TokensFetcher tokens({.seed = RandomBits()}, stub.get());
  (*engine)->set_tokens_reader(&tokens);

  std::string metrics_address;
  absl::Status ready_error;  // written before a stop that follows it, read after the loop's end
  WorkerLoop::Options options = LoopOptions(*settings, description);
  const std::string worker_id = options.worker_id;
  options.on_first_registration = [&] {
    if (flags.ready_file.empty()) return;
    ready_error = common::WriteReadyFile(
        flags.ready_file, {{"worker", worker_id}, {"metrics_listen", metrics_address}});
    if (!ready_error.ok()) stop.Stop();
  };
  WorkerLoop loop(std::move(options), stub.get(), engine->get(), metrics.get(), clock);

  std::unique_ptr<ops::OpsServer> ops;
  if (!flags.metrics_listen.empty()) {
    absl::StatusOr<std::unique_ptr<ops::OpsServer>> started =
        ops::OpsServer::Start({.listen = flags.metrics_listen,
                               .metrics = {metrics},
                               .live = {{"worker", [&loop] { return loop.CheckLive(); }}},
                               .ready = {{"server", [&loop] { return loop.CheckReady(); }}}});
    if (!started.ok()) return ExitWithMessage(program, started.status(), kExitConfiguration);
    ops = *std::move(started);
    metrics_address = ops->address().ToString();
  }
  common::Log(spdlog::level::info, "worker starts",
              {{"worker", worker_id},
               {"server", settings->server},
               {"metrics_listen", metrics_address},
               {"device", description.device()},
               {"device_name", description.device_name()},
               {"kind", description.kind()},
               {"threads", description.threads()},
               {"capacity", description.capacity()},
               {"memory_bytes", description.memory_bytes()},
               {"version", common::VersionString()}});

  stop.SetLoop(&loop);
  const absl::Status ended = loop.Run();
  stop.SetLoop(nullptr);
  if (common::ErrorReason(ended) == kEngineHangs) {
    ExitWithMessage(program, ended, kExitFailure);
    ExitNow(kExitFailure);
  }
  ops = nullptr;  // its checks use the loop
  if (!ended.ok()) return ExitWithMessage(program, ended, kExitFailure);
  if (!ready_error.ok()) return ExitWithMessage(program, ready_error, kExitConfiguration);
  common::Log(spdlog::level::info, "worker stopped", {{"worker", worker_id}});
  return kExitOk;
}

}  // namespace hopscope::link

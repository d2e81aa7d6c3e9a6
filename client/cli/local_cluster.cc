#include "client/cli/local_cluster.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/child_process.h"
#include "client/cli/temporary_folder.h"
#include "common/mutex.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace hopscope::cli {
namespace {

constexpr absl::Duration kReadyPollInterval = absl::Milliseconds(20);
constexpr absl::Duration kWatchInterval = absl::Milliseconds(200);
constexpr int kLogLines = 10;

// The object that a ready file holds; nothing where it is not there or not complete.
std::optional<nlohmann::json> ReadReadyFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  nlohmann::json json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  return json;
}

class RunningCluster : public LocalCluster {
 public:
  RunningCluster(LocalClusterOptions options, std::unique_ptr<TemporaryFolder> folder)
      : options_(std::move(options)), folder_(std::move(folder)) {}

  ~RunningCluster() override {
    {
      common::MutexLock lock(&mutex_);
      stopping_ = true;
      changed_.SignalAll();
    }
    if (watcher_.joinable()) watcher_.join();
    Stop();
  }

  absl::Status Start() {
    HOPSCOPE_ASSIGN_OR_RETURN(
        server_, Spawn("server", {options_.server_program, "--listen", "127.0.0.1:0",
                                  "--metrics_listen", "127.0.0.1:0", "--state_dir",
                                  folder_->File("state"), "--model_root", options_.model_root}));
    const absl::Time deadline = absl::Now() + options_.start_timeout;
    HOPSCOPE_ASSIGN_OR_RETURN(const nlohmann::json ready, WaitReady(*server_, deadline));
    const auto listen = ready.find("listen");
    if (listen == ready.end() || !listen->is_string()) {
      return common::MakeError(
          absl::StatusCode::kFailedPrecondition, "PROGRAM_NOT_READY",
          absl::StrCat("the ready file of ", options_.server_program, " has no \"listen\""));
    }
    address_ = listen->get<std::string>();

    const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    const int threads = options_.threads > 0 ? options_.threads
                                             : std::max(1, cores / std::max(1, options_.workers));
    for (int i = 0; i < options_.workers; ++i) {
      HOPSCOPE_ASSIGN_OR_RETURN(
          std::unique_ptr<ChildProcess> worker,
          Spawn(absl::StrCat("worker-", i + 1),
                {options_.worker_program, "--server", address_, "--device", options_.device,
                 "--threads", absl::StrCat(threads), "--model_root", options_.model_root,
                 "--metrics_listen", "127.0.0.1:0"}));
      workers_.push_back(std::move(worker));
    }
    for (const auto& worker : workers_)
      HOPSCOPE_RETURN_IF_ERROR(WaitReady(*worker, deadline).status());
    watcher_ = std::thread([this] { Watch(); });
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }

  absl::Status lost() const override {
    common::MutexLock lock(&mutex_);
    return lost_;
  }

 private:
  std::string ReadyFile(const std::string& name) const {
    return folder_->File(absl::StrCat(name, ".ready.json"));
  }

  absl::StatusOr<std::unique_ptr<ChildProcess>> Spawn(const std::string& name,
                                                      std::vector<std::string> command) {
    command.push_back("--ready_file");
    command.push_back(ReadyFile(name));
    absl::StatusOr<std::unique_ptr<ChildProcess>> child =
        ChildProcess::Start({.name = name,
                             .command = std::move(command),
                             .log_path = folder_->File(absl::StrCat(name, ".log")),
                             .launcher = options_.launcher});
    if (!child.ok())
      return common::Annotate(child.status(), absl::StrCat("--local cannot start its ", name));
    return child;
  }

  static absl::Status EndedError(ChildProcess& child, const std::string& how,
                                 absl::string_view when) {
    const std::string log = child.LogTail(kLogLines);
    return common::MakeError(absl::StatusCode::kFailedPrecondition, "PROGRAM_ENDED",
                             absl::StrCat("the local ", child.name(), " ended ", when, " (", how,
                                          ")", log.empty() ? "" : "; its log ends with\n", log),
                             {{"value", child.name()}});
  }

  absl::StatusOr<nlohmann::json> WaitReady(ChildProcess& child, absl::Time deadline) {
    while (true) {
      // In this order: what a program wrote just before it ended does not make it ready.
      std::optional<nlohmann::json> ready = ReadReadyFile(ReadyFile(child.name()));
      if (const auto how = child.Ended(); how.has_value())
        return EndedError(child, *how, "before it was ready");
      if (ready.has_value()) return *std::move(ready);
      if (absl::Now() >= deadline) {
        const std::string log = child.LogTail(kLogLines);
        return common::MakeError(absl::StatusCode::kFailedPrecondition, "PROGRAM_NOT_READY",
                                 absl::StrCat("the local ", child.name(), " was not ready within ",
                                              absl::FormatDuration(options_.start_timeout),
                                              log.empty() ? "" : "; its log ends with\n", log),
                                 {{"value", child.name()}});
      }
      if (options_.cancellation != nullptr) {
        if (options_.cancellation->WaitFor(kReadyPollInterval))
          return absl::CancelledError("cancelled");
      } else {
        absl::SleepFor(kReadyPollInterval);
      }
    }
  }

  // Notices programs that end by themselves.
  void Watch() {
    std::vector<bool> told(workers_.size(), false);
    while (true) {
      {
        common::MutexLock lock(&mutex_);
        if (!stopping_) changed_.WaitWithTimeout(&mutex_, kWatchInterval);
        if (stopping_) return;
      }
      if (const auto how = server_->Ended(); how.has_value()) {
        Lose(EndedError(*server_, *how, "by itself"));
        return;
      }
      size_t running = 0;
      absl::Status last_end;
      for (size_t i = 0; i < workers_.size(); ++i) {
        const auto how = workers_[i]->Ended();
        if (!how.has_value()) {
          ++running;
          continue;
        }
        last_end = EndedError(*workers_[i], *how, "by itself");
        if (!told[i] && options_.on_message) options_.on_message(std::string(last_end.message()));
        told[i] = true;
      }
      if (running == 0 && !workers_.empty()) {
        Lose(common::MakeError(absl::StatusCode::kFailedPrecondition, "PROGRAM_ENDED",
                               "no local worker is left; the last one's end is told above"));
        return;
      }
    }
  }

  void Lose(absl::Status status) {
    {
      common::MutexLock lock(&mutex_);
      lost_ = std::move(status);
    }
    if (options_.cancellation != nullptr) options_.cancellation->Cancel();
  }

  // Workers first, so that they can tell the server that they go.
  void Stop() {
    const bool hurry = options_.cancellation != nullptr && options_.cancellation->cancelled();
    const absl::Duration timeout =
        hurry ? std::min(options_.stop_timeout, absl::Seconds(1)) : options_.stop_timeout;
    const absl::Time deadline = absl::Now() + timeout;
    for (const auto& worker : workers_) worker->Terminate();
    for (const auto& worker : workers_) {
      if (!worker->WaitFor(deadline - absl::Now())) worker->Kill();
    }
    if (server_ == nullptr) return;
    server_->Terminate();
    if (!server_->WaitFor(std::max(deadline - absl::Now(), absl::Seconds(1)))) server_->Kill();
  }

  const LocalClusterOptions options_;
  // Before the programs, so that it is removed after they have ended.
  const std::unique_ptr<TemporaryFolder> folder_;
  std::string address_;
  std::unique_ptr<ChildProcess> server_;
  std::vector<std::unique_ptr<ChildProcess>> workers_;
  mutable common::Mutex mutex_;
  common::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
  std::thread watcher_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LocalCluster>> StartLocalCluster(LocalClusterOptions options) {
  HOPSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<TemporaryFolder> folder,
                            TemporaryFolder::Make("hopscope-local"));
  auto cluster = std::make_unique<RunningCluster>(std::move(options), std::move(folder));
  HOPSCOPE_RETURN_IF_ERROR(cluster->Start());
  return cluster;
}

void FindPrograms(const std::function<std::string(const std::string&)>& getenv,
                  LocalClusterOptions* options) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto program = [&](const char* variable, const char* name) {
    const std::string named = getenv(variable);
    return named.empty() ? (self.parent_path() / name).string() : named;
  };
  options->server_program = program("HOPSCOPE_SERVER_PROGRAM", "hopscope-server");
  options->worker_program = program("HOPSCOPE_WORKER_PROGRAM", "hopscope-worker");
  options->launcher = self.string();
}

}  // namespace hopscope::cli

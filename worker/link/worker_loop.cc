#include "worker/link/worker_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/logging.h"
#include "common/status.h"

namespace hopscope::link {
namespace {

Session::Options SessionOptions(const WorkerLoop::Options& options) {
  Session::Options session = options.session;
  session.worker_id = options.worker_id;
  session.description = options.description;
  return session;
}

Leaser::Options LeaserOptions(const WorkerLoop::Options& options) {
  Leaser::Options leaser = options.leaser;
  leaser.worker_id = options.worker_id;
  return leaser;
}

Reporter::Options ReporterOptions(const WorkerLoop::Options& options) {
  Reporter::Options reporter = options.reporter;
  reporter.worker_id = options.worker_id;
  return reporter;
}

}  // namespace

WorkerLoop::WorkerLoop(Options options, DispatchStub* stub, engine::Engine* engine,
                       WorkerMetrics* metrics, const common::Clock* clock)
    : options_(std::move(options)),
      engine_(engine),
      capacity_(std::max(1, options_.description.capacity())),
      prefetch_({.capacity = capacity_, .time = options_.prefetch}),
      queue_(clock, [this] { leaser_.Changed(); }),
      reporter_(ReporterOptions(options_), stub, clock,
                [this](const std::string& attempt_id) { queue_.Release(attempt_id); }),
      session_(SessionOptions(options_), stub, clock, this),
      leaser_(LeaserOptions(options_), stub, clock, this),
      runner_({.engine = engine,
               .queue = &queue_,
               .reporter = &reporter_,
               .prefetch = &prefetch_,
               .metrics = metrics,
               .clock = clock}) {}

WorkerLoop::~WorkerLoop() {
  // Whoever calls others ends before them.
  queue_.Close();
  runner_.Join();
  leaser_.Stop();
  session_.Stop();
  reporter_.Stop();
}

absl::Status WorkerLoop::Run() {
  runner_.Start(capacity_);
  session_.Start();
  leaser_.Start();
  bool refused;
  {
    common::MutexLock lock(&mutex_);
    while (!stop_requested_ && refusal_.ok()) changed_.Wait(&mutex_);
    refused = !refusal_.ok();
  }
  return refused ? StopAtOnce() : StopInGoodOrder();
}

void WorkerLoop::RequestStop() {
  common::MutexLock lock(&mutex_);
  stop_requested_ = true;
  changed_.SignalAll();
}

absl::Status WorkerLoop::StopInGoodOrder() {
  const absl::Time deadline = absl::Now() + options_.grace;
  common::Log(spdlog::level::info, "stopping: leasing nothing more, finishing what runs",
              {{"worker", options_.worker_id},
               {"running", queue_.RunningUnits()},
               {"grace_seconds", absl::ToDoubleSeconds(options_.grace)}});
  HandBackWaiting("shutdown");
  // The server then answers the leaser's poll, so that no lease is lost in a cancelled call.
  session_.AnnounceDraining();
  leaser_.Stop();
  queue_.Close();
  if (!queue_.WaitUntilNothingRuns(deadline)) {
    queue_.StopRuns();
    if (absl::Status status = AwaitStoppedRuns(); !status.ok()) return status;
  }
  runner_.Join();
  if (!reporter_.WaitUntilEmpty(std::max(deadline, absl::Now() + options_.report_patience))) {
    common::Log(spdlog::level::warn,
                "reports were not delivered; the server will lease their units again",
                {{"worker", options_.worker_id}, {"reports", reporter_.backlog()}});
  }
  session_.Stop();
  reporter_.Stop();
  session_.SayGoodbye();
  return absl::OkStatus();
}

absl::Status WorkerLoop::StopAtOnce() {
  leaser_.Stop();
  queue_.StopAccepting();
  queue_.Close();
  queue_.StopRuns();
  if (absl::Status status = AwaitStoppedRuns(); !status.ok()) return status;
  runner_.Join();
  session_.Stop();
  reporter_.Stop();
  common::MutexLock lock(&mutex_);
  return refusal_;
}

absl::Status WorkerLoop::AwaitStoppedRuns() {
  if (queue_.WaitUntilNothingRuns(absl::Now() + options_.stop_patience)) return absl::OkStatus();
  return common::MakeError(
      absl::StatusCode::kDeadlineExceeded, kEngineHangs,
      absl::StrCat("the engine did not stop ", queue_.RunningUnits(), " units within ",
                   absl::FormatDuration(options_.stop_patience)));
}

void WorkerLoop::HandBackWaiting(absl::string_view reason) {
  HandBack(queue_.StopAccepting(), reason);
}

void WorkerLoop::HandBack(const std::vector<v1::UnitLease>& leases, absl::string_view reason) {
  for (const v1::UnitLease& lease : leases) {
    LogUnit(spdlog::level::info, "unit handed back before it began", LabelOf(lease));
    reporter_.Submit(UnitOutcome::HandBack(LabelOf(lease), reason));
  }
}

absl::Status WorkerLoop::CheckReady() const {
  if (session_.connected()) return absl::OkStatus();
  return absl::UnavailableError("not registered, or the server does not answer");
}

absl::Status WorkerLoop::CheckLive() const {
  if (!engine_->Healthy()) return absl::UnavailableError("the device does not answer");
  if (session_.SinceStep() > session_.MaxStep()) {
    return absl::UnavailableError(
        absl::StrCat("no heartbeat was begun for ", absl::FormatDuration(session_.SinceStep())));
  }
  if (const absl::Duration stopping = queue_.LongestStopping(); stopping > options_.stop_patience) {
    return absl::UnavailableError(absl::StrCat("a unit that was told to stop still runs after ",
                                               absl::FormatDuration(stopping)));
  }
  return absl::OkStatus();
}

std::vector<std::string> WorkerLoop::HeldAttempts() { return queue_.AttemptIds(); }

void WorkerLoop::OnCancelled(const google::protobuf::RepeatedPtrField<std::string>& attempt_ids) {
  for (const std::string& attempt_id : queue_.Cancel(attempt_ids)) {
    common::Log(spdlog::level::info, "attempt cancelled by the server",
                {{"worker", options_.worker_id}, {"attempt", attempt_id}});
  }
}

void WorkerLoop::OnDrain(bool drain) {
  common::MutexLock lock(&mutex_);
  server_drain_ = drain;
  if (stop_requested_) return;
  common::Log(spdlog::level::info, drain ? "draining, as the server wishes" : "no longer draining",
              {{"worker", options_.worker_id}});
  if (drain) {
    HandBackWaiting("drain");
  } else {
    queue_.StartAccepting();
  }
}

void WorkerLoop::OnConnection(bool connected) {
  if (!connected) return;
  reporter_.TryNow();
  leaser_.Changed();
  {
    common::MutexLock lock(&mutex_);
    if (std::exchange(was_registered_, true)) return;
  }
  if (options_.on_first_registration) options_.on_first_registration();
}

void WorkerLoop::OnRefused(absl::Status error) {
  common::MutexLock lock(&mutex_);
  refusal_ = std::move(error);
  changed_.SignalAll();
}

int WorkerLoop::WantedUnits() {
  {
    common::MutexLock lock(&mutex_);
    if (stop_requested_ || server_drain_) return 0;
  }
  if (!session_.connected() || reporter_.full()) return 0;
  return std::max(0, prefetch_.Target() - queue_.ActiveUnits());
}

std::vector<std::string> WorkerLoop::LoadedDigests() { return engine_->LoadedDigests(); }

void WorkerLoop::OnLeases(google::protobuf::RepeatedPtrField<v1::UnitLease> leases) {
  const std::vector<v1::UnitLease> unwanted = queue_.Add(std::move(leases));
  if (!unwanted.empty()) {
    bool stopping;
    {
      common::MutexLock lock(&mutex_);
      stopping = stop_requested_;
    }
    HandBack(unwanted, stopping ? "shutdown" : "drain");
  }
  session_.Poll();
}

void WorkerLoop::OnForgotten() { session_.Forgotten(); }

}  // namespace hopscope::link

// A worker's life: registers, leases units, computes them, reports, and stops in good order.
//
// Contract
// 1. Holds as many units as the engine computes at once, plus what keeps it busy for the prefetch
//    time.
// 2. A server that cannot be reached stops nothing that is held: units are computed, reports wait,
//    and both go on when the server is back, or another on the same state.
// 3. On a drain wish of the server, what has not started is handed back (reason "drain") and
//    nothing is leased until the wish ends; what runs is finished.
// 4. After RequestStop, nothing more is leased, what has not started is handed back (reason
//    "shutdown"), what runs is finished and reported. What still runs when the grace time is over
//    is stopped and handed back.
//
// Thread-safe but for Run, which is called once.
#ifndef HOPSCOPE_WORKER_LINK_WORKER_LOOP_H_
#define HOPSCOPE_WORKER_LINK_WORKER_LOOP_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "hopscope/v1/dispatch.pb.h"
#include "worker/engine/engine.h"
#include "worker/link/dispatch_stub.h"
#include "worker/link/leaser.h"
#include "worker/link/prefetch.h"
#include "worker/link/reporter.h"
#include "worker/link/session.h"
#include "worker/link/unit_queue.h"
#include "worker/link/unit_runner.h"
#include "worker/link/worker_metrics.h"

namespace hopscope::link {

// Reason of the error that Run returns where the engine does not end its runs.
inline constexpr absl::string_view kEngineHangs = "ENGINE_HANGS";

class WorkerLoop : private Session::Listener, private Leaser::Listener {
 public:
  struct Options {
    // "workers/" and a random id.
    std::string worker_id;
    // What the worker is and can do, host and version included.
    v1::WorkerDescription description;
    // How long the units that wait should keep the worker busy.
    absl::Duration prefetch = absl::Milliseconds(500);
    // From RequestStop to when units that still run are stopped.
    absl::Duration grace = absl::Seconds(30);
    // How long an engine may take to stop a run; beyond it, it counts as dead.
    absl::Duration stop_patience = absl::Seconds(10);
    // How long reports may take after the last run has ended, where the grace time is over by then.
    absl::Duration report_patience = absl::Seconds(5);
    // Called once, when the worker is registered for the first time; on a thread of the loop.
    std::function<void()> on_first_registration;

    // For tests; worker_id and description are filled in from above.
    Session::Options session;
    Leaser::Options leaser;
    Reporter::Options reporter;
  };

  // All pointers must outlive the loop.
  WorkerLoop(Options options, DispatchStub* stub, engine::Engine* engine, WorkerMetrics* metrics,
             const common::Clock* clock);
  // Blocks until the threads have ended, where Run has left some.
  ~WorkerLoop() override;

  // Works until RequestStop (OK) or until the server refuses the worker (what it said).
  // DEADLINE_EXCEEDED with reason kEngineHangs: the engine does not end its runs; the loop's
  // threads still use it, and the process can only exit.
  absl::Status Run();

  // Does not block.
  void RequestStop();

  // OK where the worker is registered and the server answers.
  absl::Status CheckReady() const;

  // Not OK where the engine is dead, or a thread of the loop hangs.
  absl::Status CheckLive() const;

 private:
  // Session::Listener.
  std::vector<std::string> HeldAttempts() override;
  void OnCancelled(const google::protobuf::RepeatedPtrField<std::string>& attempt_ids) override;
  void OnDrain(bool drain) override;
  void OnConnection(bool connected) override;
  void OnRefused(absl::Status error) override;

  // Leaser::Listener.
  int WantedUnits() override;
  std::vector<std::string> LoadedDigests() override;
  void OnLeases(google::protobuf::RepeatedPtrField<v1::UnitLease> leases) override;
  void OnForgotten() override;

  // Takes no more leases, and hands back those that wait.
  void HandBackWaiting(absl::string_view reason);
  void HandBack(const std::vector<v1::UnitLease>& leases, absl::string_view reason);
  absl::Status StopInGoodOrder();
  absl::Status StopAtOnce();
  // After StopRuns.
  absl::Status AwaitStoppedRuns();

  const Options options_;
  engine::Engine* const engine_;
  const int capacity_;
  Prefetch prefetch_;
  UnitQueue queue_;
  Reporter reporter_;
  Session session_;
  Leaser leaser_;
  UnitRunner runner_;

  mutable common::Mutex mutex_;
  common::CondVar changed_;
  bool stop_requested_ ABSL_GUARDED_BY(mutex_) = false;
  bool server_drain_ ABSL_GUARDED_BY(mutex_) = false;
  bool was_registered_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_WORKER_LOOP_H_

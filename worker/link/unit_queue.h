// The units that a worker holds, from their lease to the end of their report.
//
// An attempt is queued, then runs, then awaits the end of its report; it is named in heartbeats all
// the way, unless the server has cancelled it. Units run in the order in which they were leased.
//
// Thread-safe. `on_change` is called without a lock held, on the thread that changed something,
// after each change that may make room for a lease; it must not block.
#ifndef HOPSCOPE_WORKER_LINK_UNIT_QUEUE_H_
#define HOPSCOPE_WORKER_LINK_UNIT_QUEUE_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "hopscope/v1/dispatch.pb.h"
#include "worker/engine/engine.h"

namespace hopscope::link {

// A leased unit, and the flag that stops its run.
struct HeldUnit {
  v1::UnitLease lease;
  engine::CancelFlag cancel;
};

class UnitQueue {
 public:
  // Why a run was told to stop.
  enum class Stop {
    kNone,
    kCancelled,  // by the server: nothing is reported
    kShutdown,   // the grace time is over: the unit is handed back
  };

  // `clock` must outlive the queue.
  UnitQueue(const common::Clock* clock, std::function<void()> on_change);

  // Queues leases. Returns those that are not wanted, to be handed back, while the queue takes
  // none; an attempt that is held already is passed over.
  std::vector<v1::UnitLease> Add(google::protobuf::RepeatedPtrField<v1::UnitLease> leases);

  // The next unit to run. Blocks; null once the queue is closed.
  std::shared_ptr<HeldUnit> Take();

  // The run of an attempt has ended; returns whether it was told to stop. The attempt is held until
  // Release.
  Stop EndRun(const std::string& attempt_id);

  // The attempt is of no more concern.
  void Release(const std::string& attempt_id);

  // Drops queued units and stops running ones; passes over attempts that are not held or await
  // their report. Returns the attempts that it dropped or stopped.
  std::vector<std::string> Cancel(
      const google::protobuf::RepeatedPtrField<std::string>& attempt_ids);

  // Takes no more leases and returns the queued ones; they stay held, as reporting, until Release.
  std::vector<v1::UnitLease> StopAccepting();
  void StartAccepting();

  // Tells every run to stop (kShutdown).
  void StopRuns();

  // Take returns null from now on.
  void Close();

  // Attempts to renew, in no particular order.
  std::vector<std::string> AttemptIds() const;

  // Units that are queued or run.
  int ActiveUnits() const;
  int RunningUnits() const;

  // Until nothing runs, or the deadline (system time); true where nothing runs.
  bool WaitUntilNothingRuns(absl::Time deadline) const;

  // How long the run that was told to stop the longest ago has gone on; zero where there is none.
  absl::Duration LongestStopping() const;

 private:
  enum class Stage { kQueued, kRunning, kReporting };
  struct Entry {
    std::shared_ptr<HeldUnit> unit;
    Stage stage = Stage::kQueued;
    Stop stop = Stop::kNone;
    absl::Time stop_time;  // where stop is not kNone
  };

  void StopRun(Entry* entry, Stop stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const common::Clock* const clock_;
  const std::function<void()> on_change_;
  mutable common::Mutex mutex_;
  mutable common::CondVar changed_;
  std::map<std::string, Entry> held_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> order_ ABSL_GUARDED_BY(mutex_);  // queued attempts
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool accepting_ ABSL_GUARDED_BY(mutex_) = true;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_UNIT_QUEUE_H_

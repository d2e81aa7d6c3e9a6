// Gives units to workers and takes results in: leases with expiry, fenced by attempt id, bounded
// attempts, merging in unit order. No gRPC in here, and nothing waits: the RPC layer does the long
// polling with Signals.
//
// Methods block on the store. Thread-safe; several server replicas may share one store.
#ifndef HOPSCOPE_SERVER_JOBS_DISPATCHER_H_
#define HOPSCOPE_SERVER_JOBS_DISPATCHER_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "hopscope/v1/dispatch.pb.h"
#include "server/jobs/effects.h"
#include "server/jobs/job_observer.h"
#include "server/jobs/plan_cache.h"
#include "server/jobs/progress_meter.h"
#include "server/jobs/signals.h"
#include "server/store/store.h"

namespace hopscope::jobs {

class Dispatcher {
 public:
  struct Options {
    // A lease that no heartbeat renews for so long ends, and its worker is lost.
    absl::Duration lease_duration = absl::Seconds(30);
    // Attempts at a unit before it fails for good. PREEMPTED and handed-back ones do not count.
    int max_attempts = 4;
    // Most units that one call leases, whatever it asks for.
    int max_units_per_lease = 256;
    // A lost worker is forgotten after so long; a late report of it is then refused.
    absl::Duration lost_worker_retention = absl::Hours(1);
    // May be null; must outlive the dispatcher.
    JobObserver* observer = nullptr;
  };

  // All pointers must outlive the dispatcher.
  Dispatcher(Options options, store::Store* store, Signals* signals, const common::Clock* clock);
  ~Dispatcher();

  absl::StatusOr<v1::RegisterWorkerResponse> RegisterWorker(
      const v1::RegisterWorkerRequest& request);

  // Leases what is there now; an empty response where there is nothing for this worker.
  // `request.wait_ms` is the RPC layer's.
  absl::StatusOr<v1::LeaseUnitsResponse> LeaseUnits(const v1::LeaseUnitsRequest& request);

  // Renews the worker's leases and says what is new. `urgent` is true where the RPC layer should
  // answer at once rather than wait: a cancelled attempt, or a drain wish that the worker does not
  // know.
  struct HeartbeatAnswer {
    v1::HeartbeatResponse response;
    bool urgent = false;
  };
  absl::StatusOr<HeartbeatAnswer> Heartbeat(const v1::HeartbeatRequest& request);

  absl::StatusOr<v1::ReportUnitResponse> ReportUnit(const v1::ReportUnitRequest& request);

  // Asks a worker to drain (finish what runs, hand back the rest, lease nothing), or to stop doing
  // so; its heartbeat tells it. NOT_FOUND where there is no such worker.
  absl::Status SetDrainWish(const std::string& worker_id, bool drain);

  // Ends leases that ran out, declares workers lost, ends jobs past their deadline. To be called
  // several times per lease_duration, on any replica. For one lease_duration after the dispatcher
  // was made, and after the store could not be used, leases and workers are left alone: nobody
  // could renew them meanwhile.
  absl::Status Tick();

  // Jobs, units and workers by state, for gauges.
  absl::StatusOr<store::StateCounts> CountStates();

 private:
  // Runs `body` as one write and raises its effects once they are durable.
  absl::Status Write(
      absl::string_view operation,
      absl::FunctionRef<absl::Status(store::Transaction&, Effects&, absl::Time)> body);
  // What Tick does; `may_expire` says whether leases and workers may be lost.
  absl::Status ApplyTime(bool may_expire);
  // Repeats a bounded step as long as it says that there is more.
  absl::Status Repeat(
      absl::string_view operation,
      absl::FunctionRef<absl::StatusOr<bool>(store::Transaction&, Effects&, absl::Time)> step);

  const Options options_;
  store::Store* const store_;
  Signals* const signals_;
  const common::Clock* const clock_;
  PlanCache plans_;
  ProgressMeter progress_;

  common::Mutex mutex_;
  absl::Time no_expiry_before_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_DISPATCHER_H_

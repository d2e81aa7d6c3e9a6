// What time does to leases, workers and jobs.
#ifndef HOPSCOPE_SERVER_JOBS_EXPIRY_H_
#define HOPSCOPE_SERVER_JOBS_EXPIRY_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/jobs/effects.h"
#include "server/jobs/plan_cache.h"
#include "server/store/store.h"

namespace hopscope::jobs {

// Each works through a bounded batch and returns true where there may be more. Errors are the
// store's.

// Declares workers lost that were not heard of for lease_duration, with all their leases. Each job
// that they worked for gets one WorkerLost event, and one UnitFailed event a unit.
absl::StatusOr<bool> LoseSilentWorkers(store::Transaction& transaction, PlanCache& plans,
                                       Effects& effects, absl::Duration lease_duration,
                                       int max_attempts, absl::Time now);

// Ends leases that ran out though their worker lives: it does not know of them, or does not name
// them any more.
absl::StatusOr<bool> EndExpiredLeases(store::Transaction& transaction, PlanCache& plans,
                                      Effects& effects, int max_attempts, absl::Time now);

// Ends jobs past their deadline.
absl::StatusOr<bool> EndOverdueJobs(store::Transaction& transaction, PlanCache& plans,
                                    Effects& effects, absl::Time now);

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_EXPIRY_H_

// Which units a worker gets.
//
// Order: the highest priority; within it the tenant with the fewest leased units, so that tenants
// share alike; within a tenant the oldest job. Of a job, in this order: units that wait for another
// attempt; units of checkpoints that the worker has loaded, the latest used first; other units in
// the order of the plan. Only units that the worker can compute are given (capability.h). A unit
// that failed on a worker goes to another one as long as there is one that fits and has not failed
// it, so that one broken worker cannot use up a unit's attempts.
#ifndef HOPSCOPE_SERVER_JOBS_LEASING_H_
#define HOPSCOPE_SERVER_JOBS_LEASING_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "hopscope/v1/dispatch.pb.h"
#include "server/jobs/effects.h"
#include "server/jobs/plan_cache.h"
#include "server/store/store.h"

namespace hopscope::jobs {

// Leases up to max_units units to a worker and adds them to `leases`. Errors are the store's.
absl::Status LeaseToWorker(store::Transaction& transaction, PlanCache& plans, Effects& effects,
                           const store::WorkerRow& worker, const v1::LeaseUnitsRequest& request,
                           int max_units, absl::Duration lease_duration, absl::Time now,
                           v1::LeaseUnitsResponse& response);

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_LEASING_H_

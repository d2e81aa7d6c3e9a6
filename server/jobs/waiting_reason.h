// Why a job's units wait, for people.
#ifndef HOPSCOPE_SERVER_JOBS_WAITING_REASON_H_
#define HOPSCOPE_SERVER_JOBS_WAITING_REASON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/store.h"

namespace hopscope::jobs {

// Whether the job is pending or running with units that wait, while none of its units runs.
bool IsWaiting(const store::JobRow& job);

// Of a waiting job: that there is no worker, that none can compute its units and why, or what the
// job stands behind. `workers` are all that there are. Errors are the store's.
absl::StatusOr<std::string> WhyJobWaits(store::ReadTransaction& transaction,
                                        const store::JobRow& job, const store::JobPlanRow& plan,
                                        const std::vector<store::WorkerRow>& workers);

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_WAITING_REASON_H_

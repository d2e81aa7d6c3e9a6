// Why a job's units wait, for people.
#ifndef HOPSCOPE_SERVER_JOBS_WAITING_REASON_H_
#define HOPSCOPE_SERVER_JOBS_WAITING_REASON_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/store/store.h"

namespace hopscope::jobs {

// Empty unless the job is pending or running with units that wait while none of its units runs.
// Says whether there is no worker, none that can compute its units and why, or what the job stands
// behind. Errors are the store's.
absl::StatusOr<std::string> WhyJobWaits(store::ReadTransaction& transaction,
                                        const store::JobRow& job, const store::JobPlanRow& plan);

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_WAITING_REASON_H_

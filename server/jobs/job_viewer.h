// Jobs as the API shows them.
//
// Used within one transaction, by one thread.
#ifndef HOPSCOPE_SERVER_JOBS_JOB_VIEWER_H_
#define HOPSCOPE_SERVER_JOBS_JOB_VIEWER_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "hopscope/v1/evaluation.pb.h"
#include "server/jobs/plan_cache.h"
#include "server/store/store.h"

namespace hopscope::jobs {

// What a job's plan says of it, and its counts.
v1::EvalJob DescribePlannedJob(const store::JobRow& row, const store::JobPlanRow& plan);

class JobViewer {
 public:
  // Both must outlive the viewer.
  JobViewer(store::ReadTransaction& transaction, PlanCache& plans)
      : transaction_(transaction), plans_(plans) {}

  // Everything that is known of the job. Errors are the store's.
  absl::StatusOr<v1::EvalJob> Show(const store::JobRow& row);

 private:
  store::ReadTransaction& transaction_;
  PlanCache& plans_;
  std::optional<std::vector<store::WorkerRow>> workers_;  // read once, for all jobs that wait
};

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_JOB_VIEWER_H_

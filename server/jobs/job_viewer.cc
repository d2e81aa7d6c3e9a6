#include "server/jobs/job_viewer.h"

#include <memory>
#include <string>

#include "common/status.h"
#include "server/jobs/names.h"
#include "server/jobs/proto_time.h"
#include "server/jobs/waiting_reason.h"

namespace hopscope::jobs {

v1::EvalJob DescribePlannedJob(const store::JobRow& row, const store::JobPlanRow& plan) {
  v1::EvalJob job;
  *job.mutable_spec() = plan.spec;
  *job.mutable_totals() = row.totals;
  for (const store::CheckpointRow& checkpoint : plan.checkpoints) {
    *job.add_checkpoints() = checkpoint.ref;
  }
  for (const std::string& warning : plan.warnings) job.add_warnings(warning);
  job.set_request_id(plan.request_id);
  return job;
}

absl::StatusOr<v1::EvalJob> JobViewer::Show(const store::JobRow& row) {
  HOPSCOPE_ASSIGN_OR_RETURN(const std::shared_ptr<const store::JobPlanRow> plan,
                            plans_.Get(transaction_, row));
  v1::EvalJob job = DescribePlannedJob(row, *plan);
  job.set_name(JobName(row.id));
  job.set_state(row.state);
  *job.mutable_create_time() = ToTimestamp(row.create_time);
  if (row.start_time.has_value()) *job.mutable_start_time() = ToTimestamp(*row.start_time);
  if (row.end_time.has_value()) *job.mutable_end_time() = ToTimestamp(*row.end_time);
  for (const std::string& kind : row.worker_kinds) job.add_worker_kinds(kind);
  if (!row.failure.reason().empty()) *job.mutable_failure() = row.failure;
  job.set_last_sequence(row.last_sequence);
  if (IsWaiting(row)) {
    if (!workers_.has_value()) {
      HOPSCOPE_ASSIGN_OR_RETURN(workers_, transaction_.ListWorkers());
    }
    HOPSCOPE_ASSIGN_OR_RETURN(*job.mutable_waiting_reason(),
                              WhyJobWaits(transaction_, row, *plan, *workers_));
  }
  return job;
}

}  // namespace hopscope::jobs

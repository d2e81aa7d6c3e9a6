#include "server/jobs/expiry.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "server/jobs/failures.h"
#include "server/jobs/job_edit.h"
#include "server/jobs/required.h"

namespace hopscope::jobs {
namespace {

// Small enough that other writes do not wait long.
constexpr int kWorkerBatch = 16;
constexpr int kLeaseBatch = 256;
constexpr int kJobBatch = 16;

absl::StatusOr<JobEdit> OpenJob(store::Transaction& transaction, PlanCache& plans, Effects& effects,
                                store::JobKey key, absl::Time now) {
  HOPSCOPE_ASSIGN_OR_RETURN(store::JobRow job, Required(transaction.GetJob(key), "job"));
  HOPSCOPE_ASSIGN_OR_RETURN(std::shared_ptr<const store::JobPlanRow> plan,
                            plans.Get(transaction, job));
  return JobEdit(transaction, effects, std::move(job), std::move(plan), now);
}

std::map<store::JobKey, std::vector<store::AttemptRow>> ByJob(
    std::vector<store::AttemptRow> leases) {
  std::map<store::JobKey, std::vector<store::AttemptRow>> by_job;
  for (store::AttemptRow& lease : leases) {
    by_job[lease.unit.job].push_back(std::move(lease));
  }
  return by_job;
}

// Ends leases of one job as lost.
absl::Status LoseLeases(store::Transaction& transaction, Effects& effects, JobEdit& edit,
                        std::vector<store::AttemptRow> leases, absl::string_view why,
                        int max_attempts) {
  for (store::AttemptRow& lease : leases) {
    // The failure of an earlier one may have ended the cell, and this lease with it.
    HOPSCOPE_ASSIGN_OR_RETURN(
        store::AttemptRow attempt,
        Required(transaction.GetAttempt(lease.unit, lease.number), "attempt"));
    if (!attempt.lease_expiry.has_value()) continue;
    HOPSCOPE_ASSIGN_OR_RETURN(store::UnitRow unit,
                              Required(transaction.GetUnit(lease.unit), "unit"));
    effects.WorkerHasNews(attempt.worker);
    effects.Observe([](JobObserver& o) { o.OnLeaseExpired(); });
    HOPSCOPE_RETURN_IF_ERROR(
        edit.EndAttempt(std::move(attempt), std::move(unit), store::AttemptState::kLost,
                        MakeFailure(kWorkerLost, why), /*counts=*/true, max_attempts));
  }
  return absl::OkStatus();
}

std::string DescribeWorker(const store::WorkerRow& worker) {
  return absl::StrCat("host ", worker.description.host(), ", process ", worker.description.pid());
}

absl::Status LoseWorker(store::Transaction& transaction, PlanCache& plans, Effects& effects,
                        store::WorkerRow worker, int max_attempts, absl::Time now) {
  HOPSCOPE_ASSIGN_OR_RETURN(std::vector<store::AttemptRow> leases,
                            transaction.LeasesOfWorker(worker.id));
  const std::string why =
      absl::StrCat("worker ", worker.id, " (", DescribeWorker(worker), ") was not heard of since ",
                   absl::FormatTime(worker.heartbeat_time, absl::UTCTimeZone()));
  worker.state = v1::Worker::STATE_LOST;
  HOPSCOPE_RETURN_IF_ERROR(transaction.PutWorker(worker));
  // Units that another worker had failed may wait for this one.
  effects.WorkAppeared();
  for (auto& [key, job_leases] : ByJob(std::move(leases))) {
    HOPSCOPE_ASSIGN_OR_RETURN(JobEdit edit, OpenJob(transaction, plans, effects, key, now));
    v1::EvalEvent event;
    event.mutable_worker_lost()->set_worker(worker.id);
    event.mutable_worker_lost()->set_description(DescribeWorker(worker));
    for (const store::AttemptRow& lease : job_leases) {
      v1::UnitRef* unit = event.mutable_worker_lost()->add_units();
      unit->set_cell_index(lease.unit.cell);
      unit->set_unit_index(lease.unit.unit);
    }
    HOPSCOPE_RETURN_IF_ERROR(edit.AppendEvent(std::move(event)));
    HOPSCOPE_RETURN_IF_ERROR(
        LoseLeases(transaction, effects, edit, std::move(job_leases), why, max_attempts));
    HOPSCOPE_RETURN_IF_ERROR(edit.Save());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> LoseSilentWorkers(store::Transaction& transaction, PlanCache& plans,
                                       Effects& effects, absl::Duration lease_duration,
                                       int max_attempts, absl::Time now) {
  HOPSCOPE_ASSIGN_OR_RETURN(std::vector<store::WorkerRow> workers,
                            transaction.SilentWorkers(now - lease_duration, kWorkerBatch));
  for (store::WorkerRow& worker : workers) {
    HOPSCOPE_RETURN_IF_ERROR(
        LoseWorker(transaction, plans, effects, std::move(worker), max_attempts, now));
  }
  return workers.size() == kWorkerBatch;
}

absl::StatusOr<bool> EndExpiredLeases(store::Transaction& transaction, PlanCache& plans,
                                      Effects& effects, int max_attempts, absl::Time now) {
  HOPSCOPE_ASSIGN_OR_RETURN(std::vector<store::AttemptRow> leases,
                            transaction.ExpiredLeases(now, kLeaseBatch));
  const bool more = leases.size() == kLeaseBatch;
  for (auto& [key, job_leases] : ByJob(std::move(leases))) {
    HOPSCOPE_ASSIGN_OR_RETURN(JobEdit edit, OpenJob(transaction, plans, effects, key, now));
    HOPSCOPE_RETURN_IF_ERROR(LoseLeases(transaction, effects, edit, std::move(job_leases),
                                        "the worker did not renew the lease in time",
                                        max_attempts));
    HOPSCOPE_RETURN_IF_ERROR(edit.Save());
  }
  return more;
}

absl::StatusOr<bool> EndOverdueJobs(store::Transaction& transaction, PlanCache& plans,
                                    Effects& effects, absl::Time now) {
  HOPSCOPE_ASSIGN_OR_RETURN(std::vector<store::JobRow> jobs,
                            transaction.JobsPastDeadline(now, kJobBatch));
  const bool more = jobs.size() == kJobBatch;
  for (store::JobRow& job : jobs) {
    HOPSCOPE_ASSIGN_OR_RETURN(std::shared_ptr<const store::JobPlanRow> plan,
                              plans.Get(transaction, job));
    JobEdit edit(transaction, effects, std::move(job), std::move(plan), now);
    HOPSCOPE_RETURN_IF_ERROR(
        edit.Finish(v1::EvalJob::STATE_FAILED,
                    MakeFailure(kDeadline, absl::StrCat("not done ", edit.plan().spec.deadline_s(),
                                                        " s after it was submitted"))));
    HOPSCOPE_RETURN_IF_ERROR(edit.Save());
  }
  return more;
}

}  // namespace hopscope::jobs

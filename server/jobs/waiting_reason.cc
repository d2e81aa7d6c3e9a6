#include "server/jobs/waiting_reason.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "server/jobs/capability.h"
#include "server/jobs/names.h"

namespace hopscope::jobs {
namespace {

// Why a worker can compute no unit of the job at all; empty: it can.
std::string WhyWorkerDoesNotFit(const v1::WorkerDescription& worker, const store::JobRow& job,
                                const store::JobPlanRow& plan) {
  std::string why = WhyJobDoesNotFit(worker, job, plan.spec);
  if (!why.empty()) return why;
  bool fits = false;
  for (const v1::TaskSpec& task : plan.spec.tasks()) {
    const std::string reason = WhyTaskDoesNotFit(worker, task);
    if (reason.empty()) {
      fits = true;
    } else if (why.empty()) {
      why = reason;
    }
  }
  if (!fits) return why;
  for (const store::CheckpointRow& checkpoint : plan.checkpoints) {
    const std::string reason = WhyCheckpointDoesNotFit(worker, checkpoint);
    if (reason.empty()) return "";
    why = reason;
  }
  return why;
}

// What of the queue is served first; empty: nothing.
absl::StatusOr<std::string> WhatIsAhead(store::ReadTransaction& transaction,
                                        const store::JobRow& job) {
  HOPSCOPE_ASSIGN_OR_RETURN(const std::vector<store::QueueHead> heads, transaction.QueueHeads());
  if (heads.empty()) return "";
  if (heads.front().priority > job.priority) {
    HOPSCOPE_ASSIGN_OR_RETURN(const std::vector<store::JobRow> first,
                              transaction.QueuedJobs(heads.front(), std::nullopt, 1));
    if (first.empty()) return "";
    return absl::StrCat("waits behind ", JobName(first.front().id), ", which has priority ",
                        first.front().priority, " (this job: ", job.priority, ")");
  }
  HOPSCOPE_ASSIGN_OR_RETURN(
      const std::vector<store::JobRow> own,
      transaction.QueuedJobs({.priority = job.priority, .tenant = job.tenant}, std::nullopt, 1));
  if (own.empty() || own.front().key == job.key) return "";
  return absl::StrCat("waits behind ", JobName(own.front().id), ", which was submitted earlier");
}

}  // namespace

bool IsWaiting(const store::JobRow& job) {
  return (job.state == v1::EvalJob::STATE_PENDING || job.state == v1::EvalJob::STATE_RUNNING) &&
         job.leased_units == 0 && job.queued_units > 0;
}

absl::StatusOr<std::string> WhyJobWaits(store::ReadTransaction& transaction,
                                        const store::JobRow& job, const store::JobPlanRow& plan,
                                        const std::vector<store::WorkerRow>& workers) {
  int active = 0;
  int fitting = 0;
  std::map<std::string, int> reasons;
  for (const store::WorkerRow& worker : workers) {
    if (worker.state != v1::Worker::STATE_ACTIVE) continue;
    ++active;
    const std::string why = WhyWorkerDoesNotFit(worker.description, job, plan);
    why.empty() ? ++fitting : ++reasons[why];
  }
  if (active == 0) return "no worker is connected";
  if (fitting == 0) {
    const auto most =
        std::max_element(reasons.begin(), reasons.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return absl::StrCat("none of ", active, " connected worker(s) can compute its units; of ",
                        most->second, ": ", most->first);
  }
  HOPSCOPE_ASSIGN_OR_RETURN(std::string ahead, WhatIsAhead(transaction, job));
  if (!ahead.empty()) return ahead;
  return absl::StrCat("waits for one of ", fitting, " worker(s) that can compute its units");
}

}  // namespace hopscope::jobs

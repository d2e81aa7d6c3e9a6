#include "server/jobs/plan_cache.h"

#include "common/status.h"

namespace hopscope::jobs {

absl::StatusOr<std::shared_ptr<const store::JobPlanRow>> PlanCache::Get(
    store::ReadTransaction& transaction, const store::JobRow& job) {
  {
    common::MutexLock lock(&mutex_);
    const auto found = by_id_.find(job.id);
    if (found != by_id_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      return found->second->second;
    }
  }
  HOPSCOPE_ASSIGN_OR_RETURN(store::JobPlanRow loaded, transaction.GetJobPlan(job.key));
  auto plan = std::make_shared<const store::JobPlanRow>(std::move(loaded));
  common::MutexLock lock(&mutex_);
  if (by_id_.contains(job.id)) return plan;  // another thread was faster
  recent_.emplace_front(job.id, plan);
  by_id_.emplace(job.id, recent_.begin());
  if (recent_.size() > capacity_) {
    by_id_.erase(recent_.back().first);
    recent_.pop_back();
  }
  return plan;
}

}  // namespace hopscope::jobs

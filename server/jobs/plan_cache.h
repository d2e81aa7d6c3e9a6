// The plans of jobs that were looked at lately, parsed. Plans never change, so that a copy in
// memory is as good as the store's.
//
// Thread-safe.
#ifndef HOPSCOPE_SERVER_JOBS_PLAN_CACHE_H_
#define HOPSCOPE_SERVER_JOBS_PLAN_CACHE_H_

#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "server/store/store.h"

namespace hopscope::jobs {

class PlanCache {
 public:
  explicit PlanCache(size_t capacity = 64) : capacity_(capacity) {}

  // The plan of a job that the transaction can see.
  absl::StatusOr<std::shared_ptr<const store::JobPlanRow>> Get(store::ReadTransaction& transaction,
                                                               const store::JobRow& job);

 private:
  // By job id, not by key: a key may be given again where the transaction that took it was rolled
  // back.
  using Entry = std::pair<std::string, std::shared_ptr<const store::JobPlanRow>>;

  const size_t capacity_;
  common::Mutex mutex_;
  std::list<Entry> recent_ ABSL_GUARDED_BY(mutex_);  // the latest first
  absl::flat_hash_map<std::string, std::list<Entry>::iterator> by_id_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_PLAN_CACHE_H_

// Hears what happens to units, for metrics. Called after the change is durable, from many threads
// at once; must not block.
#ifndef HOPSCOPE_SERVER_JOBS_JOB_OBSERVER_H_
#define HOPSCOPE_SERVER_JOBS_JOB_OBSERVER_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hopscope::jobs {

class JobObserver {
 public:
  virtual ~JobObserver() = default;

  // A unit was leased after it had waited so long, since its job was created or since it went back
  // into the queue.
  virtual void OnUnitLeased(absl::Duration wait) = 0;

  // How an attempt ended, and how long after its lease. `outcome` is "completed", "failed",
  // "handed_back", "lost" or "cancelled".
  virtual void OnAttemptEnded(absl::string_view outcome, absl::Duration duration) = 0;

  // A unit reached its end. `outcome` is "completed", "failed" (no attempt was left) or "cancelled"
  // (its job or cell ended first; counted for those that were leased at that time).
  virtual void OnUnitEnded(absl::string_view outcome) = 0;

  // A unit went back into the queue because an attempt failed. `reason` is one of the attempt's
  // reasons.
  virtual void OnRetry(absl::string_view reason) = 0;

  // A lease ran out.
  virtual void OnLeaseExpired() = 0;

  // A unit's result was taken: sequences with a result, and those of them that were answered
  // correctly.
  virtual void OnItemsScored(absl::string_view task, int32_t hops, int32_t added_tokens,
                             int64_t items, int64_t correct) = 0;
};

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_JOB_OBSERVER_H_

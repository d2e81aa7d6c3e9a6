// Wakes one loop that waits on conditions held by several objects: whoever changes one rings, the
// loop looks again.
//
//   uint64_t seen = bell.rings();
//   if (!SomethingToDo()) bell.WaitPast(seen);
//
// A ring between the look and the wait is not lost. Thread-safe.
#ifndef HOPSCOPE_WORKER_LINK_DOORBELL_H_
#define HOPSCOPE_WORKER_LINK_DOORBELL_H_

#include <cstdint>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/mutex.h"

namespace hopscope::link {

class Doorbell {
 public:
  void Ring() {
    common::MutexLock lock(&mutex_);
    ++rings_;
    changed_.SignalAll();
  }

  uint64_t rings() const {
    common::MutexLock lock(&mutex_);
    return rings_;
  }

  // Until there were more than `seen` rings or the timeout passed; true where it rang.
  bool WaitPast(uint64_t seen, absl::Duration timeout = absl::InfiniteDuration()) {
    const absl::Time deadline = absl::Now() + timeout;
    common::MutexLock lock(&mutex_);
    while (rings_ <= seen) {
      const absl::Duration left = deadline - absl::Now();
      if (left <= absl::ZeroDuration()) return false;
      changed_.WaitWithTimeout(&mutex_, left);
    }
    return true;
  }

 private:
  mutable common::Mutex mutex_;
  common::CondVar changed_;
  uint64_t rings_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_DOORBELL_H_

// A clock that tests can inject.
#ifndef HOPSCOPE_COMMON_CLOCK_H_
#define HOPSCOPE_COMMON_CLOCK_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/mutex.h"

namespace hopscope::common {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;

  // The system's clock; never destroyed.
  static const Clock* Real();
};

// Stands still until it is told to move. Thread-safe.
class FakeClock : public Clock {
 public:
  explicit FakeClock(absl::Time now) : now_(now) {}

  absl::Time Now() const override {
    MutexLock lock(&mutex_);
    return now_;
  }
  void Advance(absl::Duration by) {
    MutexLock lock(&mutex_);
    now_ += by;
  }

 private:
  mutable Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hopscope::common

#endif  // HOPSCOPE_COMMON_CLOCK_H_

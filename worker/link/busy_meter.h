// Share of its capacity that a worker has computed with over about the last half minute.
//
// ratio = (unit-seconds run within the window) / (capacity x window), 0 to 1. The window reaches
// back to the oldest of the marks that are kept, one a second; in the first half minute it begins
// with the meter. Thread-safe.
#ifndef HOPSCOPE_WORKER_LINK_BUSY_METER_H_
#define HOPSCOPE_WORKER_LINK_BUSY_METER_H_

#include <deque>

#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace hopscope::link {

class BusyMeter {
 public:
  // `clock` must outlive the meter; `capacity` is at least 1.
  BusyMeter(const common::Clock* clock, int capacity);

  // A unit begins or ends to run.
  void BeginRun();
  void EndRun();

  double Ratio();

 private:
  struct Mark {
    absl::Time time;
    absl::Duration busy;  // unit-seconds until then
  };

  // Brings busy_ up to date and forgets marks that are too old; returns the time.
  absl::Time Update() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const common::Clock* const clock_;
  const int capacity_;
  common::Mutex mutex_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time updated_ ABSL_GUARDED_BY(mutex_);
  absl::Duration busy_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();
  std::deque<Mark> marks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_BUSY_METER_H_

// Turns completed units into live CellProgress events: at most one a second and job, with the job's
// items per second over the last few seconds. Kept in memory alone, for jobs that somebody watches.
//
// Thread-safe.
#ifndef HOPSCOPE_SERVER_JOBS_PROGRESS_METER_H_
#define HOPSCOPE_SERVER_JOBS_PROGRESS_METER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/mutex.h"

namespace hopscope::jobs {

class ProgressMeter {
 public:
  // A job has `items_done` items at `now`, after it started at `start`. Returns its items per
  // second where an event is due now, else nothing.
  std::optional<double> Record(absl::string_view job, absl::Time start, absl::Time now,
                               int64_t items_done);

  // Drops what is known of a job that ended.
  void Forget(absl::string_view job);

 private:
  struct Sample {
    absl::Time time;
    int64_t items_done = 0;
  };
  struct Meter {
    absl::Time last_event = absl::InfinitePast();
    std::deque<Sample> samples;  // at most one a tenth of a second, over the window
  };

  common::Mutex mutex_;
  absl::flat_hash_map<std::string, Meter> meters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_PROGRESS_METER_H_

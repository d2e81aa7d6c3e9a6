// How many units a worker should hold: those that run, plus as many as keep it busy for the
// prefetch time, so that the round trip of a lease is hidden; no more than that, since a unit that
// waits here could run elsewhere.
//
// With n units at once and a moving average d of their duration, the worker holds n units, and
// beyond them
// - none while d is unknown, or above 4 prefetch times: a round trip is then lost in the noise;
// - otherwise ceil(n * prefetch / d), at least 1 and at most max_ahead.
//
// Thread-safe.
#ifndef HOPSCOPE_WORKER_LINK_PREFETCH_H_
#define HOPSCOPE_WORKER_LINK_PREFETCH_H_

#include <optional>

#include "absl/time/time.h"
#include "common/mutex.h"

namespace hopscope::link {

class Prefetch {
 public:
  struct Options {
    // Units that run at once, at least 1.
    int capacity = 1;
    // How long the units that wait should keep the worker busy; 0: none wait.
    absl::Duration time = absl::Milliseconds(500);
    // Bound on the units that wait, for units that take next to no time.
    int max_ahead = 32;
  };

  explicit Prefetch(Options options) : options_(options) {}

  // A unit took so long to compute, loading of its checkpoint left out.
  void Record(absl::Duration duration);

  // Units to hold, running ones included.
  int Target() const;

 private:
  const Options options_;
  mutable common::Mutex mutex_;
  std::optional<absl::Duration> mean_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_PREFETCH_H_

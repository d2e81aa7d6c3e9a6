// How long to wait before the next try: doubling from `initial` to `max`, each wait drawn evenly
// from its upper half, so that workers that lost the same server do not come back in step.
//
// Not thread-safe.
#ifndef HOPSCOPE_WORKER_LINK_BACKOFF_H_
#define HOPSCOPE_WORKER_LINK_BACKOFF_H_

#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace hopscope::link {

class Backoff {
 public:
  struct Options {
    // Upper bound of the first wait.
    absl::Duration initial = absl::Milliseconds(100);
    // Upper bound of every wait.
    absl::Duration max = absl::Seconds(5);
  };

  // The waits are a function of `seed`.
  Backoff(Options options, uint64_t seed)
      : options_(options), bound_(options.initial), random_(seed) {}

  // The next wait, in [bound / 2, bound].
  absl::Duration Next();

  // After a success: starts from `initial` again.
  void Reset() { bound_ = options_.initial; }

 private:
  const Options options_;
  absl::Duration bound_;
  std::mt19937_64 random_;
};

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_BACKOFF_H_

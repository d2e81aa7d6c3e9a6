// How long to wait before the next try: twice as long each time, and each wait drawn evenly from
// the upper half of its bound, so that clients that lost the same server do not come back in step.
#ifndef HOPSCOPE_CLIENT_BACKOFF_H_
#define HOPSCOPE_CLIENT_BACKOFF_H_

#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace hopscope::client {

struct BackoffOptions {
  // Upper bound of the first wait.
  absl::Duration initial = absl::Milliseconds(100);
  // Upper bound of every wait.
  absl::Duration max = absl::Seconds(5);
};

// Not thread-safe.
class Backoff {
 public:
  // The waits are a function of `seed`.
  Backoff(BackoffOptions options, uint64_t seed);

  absl::Duration Next();
  // After a success.
  void Reset() { bound_ = options_.initial; }

 private:
  const BackoffOptions options_;
  absl::Duration bound_;
  std::mt19937_64 random_;
};

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_BACKOFF_H_

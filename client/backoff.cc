#include "client/backoff.h"

#include <algorithm>

namespace hopscope::client {

Backoff::Backoff(BackoffOptions options, uint64_t seed)
    : options_(options), bound_(options.initial), random_(seed) {}

absl::Duration Backoff::Next() {
  const absl::Duration wait = bound_ * std::uniform_real_distribution<double>(0.5, 1.0)(random_);
  bound_ = std::min(bound_ * 2, options_.max);
  return wait;
}

}  // namespace hopscope::client

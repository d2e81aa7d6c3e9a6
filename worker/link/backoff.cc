#include "worker/link/backoff.h"

#include <algorithm>

namespace hopscope::link {

absl::Duration Backoff::Next() {
  const double share = std::uniform_real_distribution<double>(0.5, 1.0)(random_);
  const absl::Duration wait = bound_ * share;
  bound_ = std::min(bound_ * 2, options_.max);
  return wait;
}

}  // namespace hopscope::link

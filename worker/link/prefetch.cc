#include "worker/link/prefetch.h"

#include <algorithm>
#include <cmath>

namespace hopscope::link {
namespace {

// Weight of the newest duration: cells of one job differ in length, so the average has to follow
// within a few units.
constexpr double kNewest = 0.3;

}  // namespace

void Prefetch::Record(absl::Duration duration) {
  duration = std::max(duration, absl::ZeroDuration());
  common::MutexLock lock(&mutex_);
  mean_ = mean_ ? *mean_ + (duration - *mean_) * kNewest : duration;
}

int Prefetch::Target() const {
  common::MutexLock lock(&mutex_);
  if (!mean_ || options_.time <= absl::ZeroDuration() || *mean_ > options_.time * 4) {
    return options_.capacity;
  }
  const double ahead = std::ceil(options_.capacity * absl::FDivDuration(options_.time, *mean_));
  return options_.capacity + static_cast<int>(std::clamp<double>(ahead, 1, options_.max_ahead));
}

}  // namespace hopscope::link

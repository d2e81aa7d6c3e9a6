#include "worker/link/busy_meter.h"

#include <algorithm>

namespace hopscope::link {
namespace {

constexpr absl::Duration kWindow = absl::Seconds(30);
constexpr absl::Duration kMarkSpacing = absl::Seconds(1);

}  // namespace

BusyMeter::BusyMeter(const common::Clock* clock, int capacity)
    : clock_(clock), capacity_(capacity), updated_(clock->Now()) {
  common::MutexLock lock(&mutex_);
  marks_.push_back({updated_, busy_});
}

void BusyMeter::BeginRun() {
  common::MutexLock lock(&mutex_);
  Update();
  ++running_;
}

void BusyMeter::EndRun() {
  common::MutexLock lock(&mutex_);
  Update();
  --running_;
}

double BusyMeter::Ratio() {
  common::MutexLock lock(&mutex_);
  const absl::Time now = Update();
  const absl::Duration window = now - marks_.front().time;
  if (window <= absl::ZeroDuration()) return running_ > 0 ? 1.0 * running_ / capacity_ : 0.0;
  const double ratio = absl::FDivDuration(busy_ - marks_.front().busy, window * capacity_);
  return std::clamp(ratio, 0.0, 1.0);
}

absl::Time BusyMeter::Update() {
  const absl::Time now = std::max(clock_->Now(), updated_);
  const absl::Duration passed = now - updated_;
  // Long gaps between calls get a mark at the window's beginning, on the straight line between
  // them.
  if (passed > kWindow) {
    const absl::Duration before = passed - kWindow;
    marks_.clear();
    marks_.push_back({updated_ + before, busy_ + before * running_});
  }
  busy_ += passed * running_;
  updated_ = now;
  if (now - marks_.back().time >= kMarkSpacing) marks_.push_back({now, busy_});
  while (marks_.size() > 1 && now - marks_[1].time >= kWindow) marks_.pop_front();
  return now;
}

}  // namespace hopscope::link

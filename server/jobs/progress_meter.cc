#include "server/jobs/progress_meter.h"

#include <algorithm>

namespace hopscope::jobs {
namespace {

constexpr absl::Duration kEventInterval = absl::Seconds(1);
constexpr absl::Duration kSampleInterval = absl::Milliseconds(100);
constexpr absl::Duration kWindow = absl::Seconds(5);
// Watched jobs that are remembered; beyond that, all are forgotten and begin anew.
constexpr size_t kMaxJobs = 4096;

}  // namespace

std::optional<double> ProgressMeter::Record(absl::string_view job, absl::Time start, absl::Time now,
                                            int64_t items_done) {
  common::MutexLock lock(&mutex_);
  if (meters_.size() >= kMaxJobs && !meters_.contains(job)) meters_.clear();
  Meter& meter = meters_[job];
  // Reports of several threads come in any order.
  if (meter.samples.empty()) meter.samples.push_back({start, 0});
  if (now - meter.samples.back().time >= kSampleInterval) {
    meter.samples.push_back({now, items_done});
  }
  while (meter.samples.size() > 2 && now - meter.samples[1].time >= kWindow) {
    meter.samples.pop_front();
  }
  if (now - meter.last_event < kEventInterval) return std::nullopt;
  meter.last_event = now;
  const Sample& base = meter.samples.front();
  const double seconds = absl::ToDoubleSeconds(now - base.time);
  if (seconds <= 0) return 0;
  return static_cast<double>(std::max<int64_t>(0, items_done - base.items_done)) / seconds;
}

void ProgressMeter::Forget(absl::string_view job) {
  common::MutexLock lock(&mutex_);
  meters_.erase(job);
}

}  // namespace hopscope::jobs

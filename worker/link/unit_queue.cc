#include "worker/link/unit_queue.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace hopscope::link {

UnitQueue::UnitQueue(const common::Clock* clock, std::function<void()> on_change)
    : clock_(clock), on_change_(std::move(on_change)) {}

std::vector<v1::UnitLease> UnitQueue::Add(
    google::protobuf::RepeatedPtrField<v1::UnitLease> leases) {
  std::vector<v1::UnitLease> unwanted;
  common::MutexLock lock(&mutex_);
  for (v1::UnitLease& lease : leases) {
    const std::string attempt_id = lease.attempt_id();
    Entry entry;
    entry.stage = accepting_ ? Stage::kQueued : Stage::kReporting;
    entry.unit = std::make_shared<HeldUnit>();
    entry.unit->lease = std::move(lease);
    const auto [held, is_new] = held_.emplace(attempt_id, std::move(entry));
    if (!is_new) continue;
    if (accepting_) {
      order_.push_back(attempt_id);
    } else {
      unwanted.push_back(held->second.unit->lease);
    }
  }
  changed_.SignalAll();
  return unwanted;
}

std::shared_ptr<HeldUnit> UnitQueue::Take() {
  std::shared_ptr<HeldUnit> unit;
  common::MutexLock lock(&mutex_);
  while (!closed_ && order_.empty()) changed_.Wait(&mutex_);
  if (closed_) return nullptr;
  Entry& entry = held_.at(order_.front());
  order_.pop_front();
  entry.stage = Stage::kRunning;
  ++running_;
  return entry.unit;
}

UnitQueue::Stop UnitQueue::EndRun(const std::string& attempt_id) {
  Stop stop;
  {
    common::MutexLock lock(&mutex_);
    Entry& entry = held_.at(attempt_id);
    entry.stage = Stage::kReporting;
    stop = entry.stop;
    --running_;
    changed_.SignalAll();
  }
  on_change_();
  return stop;
}

void UnitQueue::Release(const std::string& attempt_id) {
  {
    common::MutexLock lock(&mutex_);
    held_.erase(attempt_id);
  }
  on_change_();
}

void UnitQueue::StopRun(Entry* entry, Stop stop) {
  if (entry->stop != Stop::kNone) return;
  entry->stop = stop;
  entry->stop_time = clock_->Now();
  entry->unit->cancel.Cancel();
}

std::vector<std::string> UnitQueue::Cancel(
    const google::protobuf::RepeatedPtrField<std::string>& attempt_ids) {
  std::vector<std::string> cancelled;
  {
    common::MutexLock lock(&mutex_);
    for (const std::string& attempt_id : attempt_ids) {
      const auto held = held_.find(attempt_id);
      if (held == held_.end()) continue;
      Entry& entry = held->second;
      if (entry.stage == Stage::kReporting || entry.stop == Stop::kCancelled) continue;
      cancelled.push_back(attempt_id);
      if (entry.stage == Stage::kRunning) {
        StopRun(&entry, Stop::kCancelled);
        // Where the grace time stopped it first, there is nobody left to hand it back to.
        entry.stop = Stop::kCancelled;
      } else {
        order_.erase(std::find(order_.begin(), order_.end(), attempt_id));
        held_.erase(held);
      }
    }
  }
  if (!cancelled.empty()) on_change_();
  return cancelled;
}

std::vector<v1::UnitLease> UnitQueue::StopAccepting() {
  std::vector<v1::UnitLease> queued;
  common::MutexLock lock(&mutex_);
  accepting_ = false;
  for (const std::string& attempt_id : order_) {
    Entry& entry = held_.at(attempt_id);
    entry.stage = Stage::kReporting;
    queued.push_back(entry.unit->lease);
  }
  order_.clear();
  return queued;
}

void UnitQueue::StartAccepting() {
  {
    common::MutexLock lock(&mutex_);
    accepting_ = true;
  }
  on_change_();
}

void UnitQueue::StopRuns() {
  common::MutexLock lock(&mutex_);
  for (auto& [attempt_id, entry] : held_) {
    if (entry.stage == Stage::kRunning) StopRun(&entry, Stop::kShutdown);
  }
}

void UnitQueue::Close() {
  common::MutexLock lock(&mutex_);
  closed_ = true;
  changed_.SignalAll();
}

std::vector<std::string> UnitQueue::AttemptIds() const {
  std::vector<std::string> attempt_ids;
  common::MutexLock lock(&mutex_);
  for (const auto& [attempt_id, entry] : held_) {
    if (entry.stop != Stop::kCancelled) attempt_ids.push_back(attempt_id);
  }
  return attempt_ids;
}

int UnitQueue::ActiveUnits() const {
  common::MutexLock lock(&mutex_);
  return static_cast<int>(order_.size()) + running_;
}

int UnitQueue::RunningUnits() const {
  common::MutexLock lock(&mutex_);
  return running_;
}

bool UnitQueue::WaitUntilNothingRuns(absl::Time deadline) const {
  common::MutexLock lock(&mutex_);
  while (running_ > 0) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return false;
    changed_.WaitWithTimeout(&mutex_, left);
  }
  return true;
}

absl::Duration UnitQueue::LongestStopping() const {
  absl::Duration longest = absl::ZeroDuration();
  const absl::Time now = clock_->Now();
  common::MutexLock lock(&mutex_);
  for (const auto& [attempt_id, entry] : held_) {
    if (entry.stage == Stage::kRunning && entry.stop != Stop::kNone) {
      longest = std::max(longest, now - entry.stop_time);
    }
  }
  return longest;
}

}  // namespace hopscope::link

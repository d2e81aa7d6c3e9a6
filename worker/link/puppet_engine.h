// An engine whose runs go as the test says: each waits where it is told to, stops for its cancel
// flag, and ends as told.
//
// Thread-safe.
#ifndef HOPSCOPE_WORKER_LINK_PUPPET_ENGINE_H_
#define HOPSCOPE_WORKER_LINK_PUPPET_ENGINE_H_

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "common/mutex.h"
#include "worker/engine/engine.h"

namespace hopscope::link {

class PuppetEngine : public engine::Engine {
 public:
  explicit PuppetEngine(int capacity = 1) : capacity_(capacity) {}

  // Runs wait from now on, until Release lets `count` of them, present or future, go on.
  void Hold() {
    common::MutexLock lock(&mutex_);
    holding_ = true;
  }
  void Release(int count = 1) {
    common::MutexLock lock(&mutex_);
    released_ += count;
    changed_.SignalAll();
  }
  // The next run fails with this.
  void FailNext(absl::Status error) {
    common::MutexLock lock(&mutex_);
    errors_.push_back(std::move(error));
  }
  // Held runs no longer look at their cancel flag.
  void Hang() {
    common::MutexLock lock(&mutex_);
    hangs_ = true;
  }
  void SetHealthy(bool healthy) {
    common::MutexLock lock(&mutex_);
    healthy_ = healthy;
  }
  void SetStatistics(const engine::RunStatistics& statistics) {
    common::MutexLock lock(&mutex_);
    statistics_ = statistics;
  }
  // What a run finds; else a result with the unit's number of items.
  void SetResult(std::function<v1::UnitResult(const v1::WorkUnit&)> result) {
    common::MutexLock lock(&mutex_);
    result_ = std::move(result);
  }

  // Until `count` runs are in progress; false, which fails the test, after half a minute.
  bool AwaitRunning(int count) {
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    common::MutexLock lock(&mutex_);
    while (running_ != count) {
      if (absl::Now() >= deadline) return false;
      changed_.WaitWithTimeout(&mutex_, deadline - absl::Now());
    }
    return true;
  }

  void Describe(v1::WorkerDescription* description) const override {
    description->set_device("cpu");
    description->set_device_name("puppet");
    description->set_memory_bytes(1 << 30);
    description->add_scorers("accuracy");
    description->set_kind("puppet");
    description->set_capacity(capacity_);
    description->set_threads(1);
  }

  absl::StatusOr<v1::UnitResult> Run(const v1::WorkUnit& unit, const engine::CancelFlag& cancel,
                                     engine::RunStatistics* statistics) override {
    common::MutexLock lock(&mutex_);
    ++running_;
    changed_.SignalAll();
    absl::StatusOr<v1::UnitResult> result = RunLocked(unit, cancel);
    if (statistics != nullptr) *statistics = statistics_;
    --running_;
    changed_.SignalAll();
    return result;
  }

  std::vector<std::string> LoadedDigests() const override { return {"sha256:loaded"}; }
  int64_t LoadedBytes() const override { return 4096; }
  bool Healthy() const override {
    common::MutexLock lock(&mutex_);
    return healthy_;
  }

 private:
  absl::StatusOr<v1::UnitResult> RunLocked(const v1::WorkUnit& unit,
                                           const engine::CancelFlag& cancel)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (holding_ && released_ == 0) {
      if (cancel.cancelled() && !hangs_) return absl::CancelledError("stopped");
      // As an engine looks at the flag between layers.
      changed_.WaitWithTimeout(&mutex_, absl::Milliseconds(1));
    }
    if (holding_) --released_;
    if (!errors_.empty()) {
      absl::Status error = std::move(errors_.front());
      errors_.pop_front();
      return error;
    }
    if (result_) return result_(unit);
    v1::UnitResult result;
    result.set_items(unit.item_count());
    return result;
  }

  const int capacity_;
  mutable common::Mutex mutex_;
  common::CondVar changed_;
  bool holding_ ABSL_GUARDED_BY(mutex_) = false;
  int released_ ABSL_GUARDED_BY(mutex_) = 0;
  bool hangs_ ABSL_GUARDED_BY(mutex_) = false;
  bool healthy_ ABSL_GUARDED_BY(mutex_) = true;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<absl::Status> errors_ ABSL_GUARDED_BY(mutex_);
  engine::RunStatistics statistics_ ABSL_GUARDED_BY(mutex_);
  std::function<v1::UnitResult(const v1::WorkUnit&)> result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_PUPPET_ENGINE_H_

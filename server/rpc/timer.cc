#include "server/rpc/timer.h"

#include <algorithm>

namespace hopscope::rpc {

Timer::Timer() : thread_([this] { Run(); }) {}

Timer::~Timer() {
  {
    common::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.Signal();
  }
  thread_.join();
}

Timer::Id Timer::CallAfter(absl::Duration delay, std::function<void()> function) {
  const auto time =
      std::chrono::steady_clock::now() +
      absl::ToChronoNanoseconds(std::clamp(delay, absl::ZeroDuration(), absl::Hours(24 * 365)));
  common::MutexLock lock(&mutex_);
  const Id id(time, next_id_++);
  calls_.emplace(id, std::move(function));
  if (calls_.begin()->first == id) changed_.Signal();
  return id;
}

void Timer::Cancel(const Id& id) {
  std::function<void()> dropped;  // destroyed without the lock: it may own anything
  common::MutexLock lock(&mutex_);
  if (const auto found = calls_.find(id); found != calls_.end()) {
    dropped = std::move(found->second);
    calls_.erase(found);
  }
}

void Timer::Run() {
  while (true) {
    std::function<void()> function;
    {
      common::MutexLock lock(&mutex_);
      while (!stopping_) {
        if (calls_.empty()) {
          changed_.Wait(&mutex_);
          continue;
        }
        const auto wait = calls_.begin()->first.first - std::chrono::steady_clock::now();
        if (wait.count() <= 0) break;
        changed_.WaitWithTimeout(&mutex_, absl::FromChrono(wait));
      }
      if (stopping_) return;
      function = std::move(calls_.begin()->second);
      calls_.erase(calls_.begin());
    }
    function();
  }
}

}  // namespace hopscope::rpc

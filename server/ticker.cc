#include "server/ticker.h"

#include <utility>

namespace hopscope::server {

Ticker::Ticker(absl::Duration interval, std::function<void()> task)
    : interval_(interval),
      task_(std::move(task)),
      last_run_(std::chrono::steady_clock::now()),
      thread_([this] { Run(); }) {}

Ticker::~Ticker() {
  {
    common::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.Signal();
  }
  thread_.join();
}

absl::Duration Ticker::SinceLastRun() const {
  common::MutexLock lock(&mutex_);
  return absl::FromChrono(std::chrono::steady_clock::now() - last_run_);
}

void Ticker::Run() {
  while (true) {
    task_();
    common::MutexLock lock(&mutex_);
    last_run_ = std::chrono::steady_clock::now();
    while (!stopping_) {
      const absl::Duration rest =
          interval_ - absl::FromChrono(std::chrono::steady_clock::now() - last_run_);
      if (rest <= absl::ZeroDuration()) break;
      changed_.WaitWithTimeout(&mutex_, rest);
    }
    if (stopping_) return;
  }
}

}  // namespace hopscope::server

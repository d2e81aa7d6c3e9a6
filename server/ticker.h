// Does something again and again, on a thread of its own, and knows when it last did.
#ifndef HOPSCOPE_SERVER_TICKER_H_
#define HOPSCOPE_SERVER_TICKER_H_

#include <chrono>
#include <functional>
#include <thread>

#include "absl/time/time.h"
#include "common/mutex.h"

namespace hopscope::server {

// Thread-safe.
class Ticker {
 public:
  // Runs `task` now, and again `interval` after each end.
  Ticker(absl::Duration interval, std::function<void()> task);
  // Waits for a run in progress.
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  // Time since a run last ended, or since the start where none has.
  absl::Duration SinceLastRun() const;

 private:
  void Run();

  const absl::Duration interval_;
  const std::function<void()> task_;
  mutable common::Mutex mutex_;
  common::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::chrono::steady_clock::time_point last_run_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace hopscope::server

#endif  // HOPSCOPE_SERVER_TICKER_H_

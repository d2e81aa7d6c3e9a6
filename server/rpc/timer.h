// Calls functions at a later time, on one thread of its own.
//
// Functions must not block. Thread-safe.
#ifndef HOPSCOPE_SERVER_RPC_TIMER_H_
#define HOPSCOPE_SERVER_RPC_TIMER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "common/mutex.h"

namespace hopscope::rpc {

class Timer {
 public:
  // Names a call to come.
  using Id = std::pair<std::chrono::steady_clock::time_point, int64_t>;

  Timer();
  // Calls to come are dropped; waits for one in progress.
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  Id CallAfter(absl::Duration delay, std::function<void()> function);

  // A call that has begun, or is over, is left alone.
  void Cancel(const Id& id);

 private:
  void Run();

  common::Mutex mutex_;
  common::CondVar changed_;
  std::map<Id, std::function<void()>> calls_ ABSL_GUARDED_BY(mutex_);
  int64_t next_id_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hopscope::rpc

#endif  // HOPSCOPE_SERVER_RPC_TIMER_H_

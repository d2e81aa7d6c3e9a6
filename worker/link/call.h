// One outgoing RPC: how long it may take, and a way for another thread to end it, which long polls
// need.
//
// Thread-safe. A stub registers how the call is ended for as long as it runs:
//   Call::Ending ending(call, [&context] { context.TryCancel(); });
#ifndef HOPSCOPE_WORKER_LINK_CALL_H_
#define HOPSCOPE_WORKER_LINK_CALL_H_

#include <functional>
#include <utility>

#include "absl/time/time.h"
#include "common/mutex.h"

namespace hopscope::link {

class Call {
 public:
  explicit Call(absl::Duration timeout) : timeout_(timeout) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // From the call's start to DEADLINE_EXCEEDED.
  absl::Duration timeout() const { return timeout_; }

  // The call returns CANCELLED soon, or at once where it has not begun; one that has its answer
  // already keeps it.
  void Cancel() {
    common::MutexLock lock(&mutex_);
    cancelled_ = true;
    if (end_) end_();
  }

  bool cancelled() const {
    common::MutexLock lock(&mutex_);
    return cancelled_;
  }

  class Ending {
   public:
    // `end` must not block nor call back into the Call; it has not run and will not run once the
    // Ending is destroyed.
    Ending(Call* call, std::function<void()> end) : call_(call) {
      common::MutexLock lock(&call_->mutex_);
      if (call_->cancelled_) end();
      call_->end_ = std::move(end);
    }
    ~Ending() {
      common::MutexLock lock(&call_->mutex_);
      call_->end_ = nullptr;
    }
    Ending(const Ending&) = delete;
    Ending& operator=(const Ending&) = delete;

   private:
    Call* const call_;
  };

 private:
  const absl::Duration timeout_;
  mutable common::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_CALL_H_

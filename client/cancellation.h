// Lets one thread end what others wait for: calls, streams and pauses.
#ifndef HOPSCOPE_CLIENT_CANCELLATION_H_
#define HOPSCOPE_CLIENT_CANCELLATION_H_

#include <cstdint>
#include <functional>
#include <map>

#include "absl/time/time.h"
#include "common/mutex.h"

namespace hopscope::client {

// Happens once and for good. Thread-safe; not for signal handlers.
class Cancellation {
 public:
  Cancellation() = default;
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  void Cancel();
  bool cancelled() const;

  // Pauses for `duration`, or until it is cancelled. Returns true where it is.
  bool WaitFor(absl::Duration duration);

  // Runs `on_cancel` on the cancelling thread, or at once where that has happened, unless it is
  // destroyed before. When its destructor returns, `on_cancel` neither runs nor will. `on_cancel`
  // must not block, nor destroy its own Hook.
  class Hook {
   public:
    Hook(Cancellation* cancellation, std::function<void()> on_cancel);
    ~Hook();
    Hook(const Hook&) = delete;
    Hook& operator=(const Hook&) = delete;

   private:
    Cancellation* const cancellation_;
    int64_t id_ = 0;
  };

 private:
  mutable common::Mutex mutex_;
  common::CondVar changed_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t next_hook_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<int64_t, std::function<void()>> hooks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_CANCELLATION_H_

#include "client/cancellation.h"

#include <utility>

#include "absl/time/clock.h"

namespace hopscope::client {

void Cancellation::Cancel() {
  // Under the lock, so that the destructor of a hook waits for it to return.
  common::MutexLock lock(&mutex_);
  if (cancelled_) return;
  cancelled_ = true;
  changed_.SignalAll();
  for (const auto& [id, on_cancel] : hooks_) on_cancel();
}

bool Cancellation::cancelled() const {
  common::MutexLock lock(&mutex_);
  return cancelled_;
}

bool Cancellation::WaitFor(absl::Duration duration) {
  const absl::Time end = absl::Now() + duration;
  common::MutexLock lock(&mutex_);
  while (!cancelled_) {
    const absl::Duration left = end - absl::Now();
    if (left <= absl::ZeroDuration()) break;
    changed_.WaitWithTimeout(&mutex_, left);
  }
  return cancelled_;
}

Cancellation::Hook::Hook(Cancellation* cancellation, std::function<void()> on_cancel)
    : cancellation_(cancellation) {
  common::MutexLock lock(&cancellation_->mutex_);
  if (cancellation_->cancelled_) {
    on_cancel();
    return;
  }
  id_ = cancellation_->next_hook_++;
  cancellation_->hooks_.emplace(id_, std::move(on_cancel));
}

Cancellation::Hook::~Hook() {
  common::MutexLock lock(&cancellation_->mutex_);
  cancellation_->hooks_.erase(id_);
}

}  // namespace hopscope::client

#include "client/cli/command_interrupts.h"

#include "absl/time/clock.h"

namespace hopscope::cli {

CommandInterrupts::CommandInterrupts(Interrupts* interrupts, client::Cancellation* cancellation)
    : interrupts_(*interrupts), cancellation_(*cancellation) {
  interrupts_.SetHandler([this](int) { OnInterrupt(); });
}

CommandInterrupts::~CommandInterrupts() { interrupts_.SetHandler(nullptr); }

void CommandInterrupts::OnInterrupt() {
  bool cancel = false;
  {
    common::MutexLock lock(&mutex_);
    ++count_;
    cancel = !spare_first_ || count_ > 1;
    changed_.SignalAll();
  }
  if (cancel) cancellation_.Cancel();
}

CommandInterrupts::SpareTheFirst::SpareTheFirst(CommandInterrupts* interrupts)
    : interrupts_(interrupts) {
  common::MutexLock lock(&interrupts_->mutex_);
  interrupts_->spare_first_ = true;
}

CommandInterrupts::SpareTheFirst::~SpareTheFirst() {
  common::MutexLock lock(&interrupts_->mutex_);
  interrupts_->spare_first_ = false;
}

int CommandInterrupts::count() const {
  common::MutexLock lock(&mutex_);
  return count_;
}

int CommandInterrupts::WaitForMore(int seen, absl::Duration timeout) {
  const absl::Time end = absl::Now() + timeout;
  common::MutexLock lock(&mutex_);
  while (count_ <= seen && !woken_) {
    const absl::Duration left = end - absl::Now();
    if (left <= absl::ZeroDuration()) break;
    changed_.WaitWithTimeout(&mutex_, left);
  }
  woken_ = false;
  return count_;
}

void CommandInterrupts::Wake() {
  common::MutexLock lock(&mutex_);
  woken_ = true;
  changed_.SignalAll();
}

}  // namespace hopscope::cli

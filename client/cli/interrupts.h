// Ctrl-C and its like (SIGINT, SIGTERM, SIGHUP) as events for ordinary code.
#ifndef HOPSCOPE_CLIENT_CLI_INTERRUPTS_H_
#define HOPSCOPE_CLIENT_CLI_INTERRUPTS_H_

#include <functional>
#include <memory>

#include "common/mutex.h"

namespace hopscope::cli {

// Thread-safe.
class Interrupts {
 public:
  virtual ~Interrupts() = default;

  // Called with 1, 2, ... for each interrupt from now on, on some other thread, one at a time; must
  // not block. Null: none. When this returns, the handler of before neither runs nor will. Not to
  // be called from within a handler.
  virtual void SetHandler(std::function<void(int count)> handler) = 0;
};

// Takes the signals over for the process. To be made before any other thread is, so that no thread
// has them unblocked. A third one, or one without a handler, ends the process at once.
std::unique_ptr<Interrupts> MakeSignalInterrupts();

// For tests: interrupts come from Trigger.
class FakeInterrupts : public Interrupts {
 public:
  void SetHandler(std::function<void(int count)> handler) override;
  void Trigger();

 private:
  common::Mutex mutex_;
  std::function<void(int)> handler_ ABSL_GUARDED_BY(mutex_);
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_INTERRUPTS_H_

// What Ctrl-C means to a command: leave at once, or, while a job of its own runs, cancel the job
// first.
#ifndef HOPSCOPE_CLIENT_CLI_COMMAND_INTERRUPTS_H_
#define HOPSCOPE_CLIENT_CLI_COMMAND_INTERRUPTS_H_

#include "absl/time/time.h"
#include "client/cancellation.h"
#include "client/cli/interrupts.h"
#include "common/mutex.h"

namespace hopscope::cli {

// Holds the interrupts for as long as it lives. Thread-safe.
class CommandInterrupts {
 public:
  // Both must outlive it. Interrupts cancel `cancellation`, which ends every call and wait of the
  // command.
  CommandInterrupts(Interrupts* interrupts, client::Cancellation* cancellation);
  ~CommandInterrupts();
  CommandInterrupts(const CommandInterrupts&) = delete;
  CommandInterrupts& operator=(const CommandInterrupts&) = delete;

  // While it lives, the first interrupt is only noted, and the second cancels.
  class SpareTheFirst {
   public:
    explicit SpareTheFirst(CommandInterrupts* interrupts);
    ~SpareTheFirst();
    SpareTheFirst(const SpareTheFirst&) = delete;
    SpareTheFirst& operator=(const SpareTheFirst&) = delete;

   private:
    CommandInterrupts* const interrupts_;
  };

  // Interrupts so far.
  int count() const;

  // Waits until there are more than `seen` interrupts, Wake was called, or the timeout has passed.
  // Returns how many there are.
  int WaitForMore(int seen, absl::Duration timeout);
  // Ends a WaitForMore, now or the next one.
  void Wake();

 private:
  void OnInterrupt();

  Interrupts& interrupts_;
  client::Cancellation& cancellation_;
  mutable common::Mutex mutex_;
  common::CondVar changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool spare_first_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_COMMAND_INTERRUPTS_H_

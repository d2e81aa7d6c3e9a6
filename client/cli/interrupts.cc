#include "client/cli/interrupts.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <utility>

#include "client/cli/exit_codes.h"

namespace hopscope::cli {
namespace {

sigset_t TakenSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

// A thread waits for the signals, which are blocked everywhere: a signal handler could lock
// nothing.
class SignalInterrupts : public Interrupts {
 public:
  SignalInterrupts() {
    const sigset_t signals = TakenSignals();
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    thread_ = std::thread([this] { Run(); });
  }

  ~SignalInterrupts() override {
    stopping_ = true;
    // The thread takes it from here; nothing else has it unblocked.
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }

  void SetHandler(std::function<void(int count)> handler) override {
    common::MutexLock lock(&mutex_);
    handler_ = std::move(handler);
  }

 private:
  void Run() {
    const sigset_t signals = TakenSignals();
    int count = 0;
    while (true) {
      int signal = 0;
      if (sigwait(&signals, &signal) != 0) continue;
      if (stopping_) return;
      ++count;
      common::MutexLock lock(&mutex_);
      if (!handler_ || count >= 3) _exit(kExitInterrupted);
      handler_(count);
    }
  }

  std::atomic<bool> stopping_ = false;
  common::Mutex mutex_;
  std::function<void(int)> handler_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Interrupts> MakeSignalInterrupts() { return std::make_unique<SignalInterrupts>(); }

void FakeInterrupts::SetHandler(std::function<void(int count)> handler) {
  common::MutexLock lock(&mutex_);
  handler_ = std::move(handler);
}

void FakeInterrupts::Trigger() {
  common::MutexLock lock(&mutex_);
  ++count_;
  if (handler_) handler_(count_);
}

}  // namespace hopscope::cli

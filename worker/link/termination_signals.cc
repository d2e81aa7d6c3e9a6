#include "worker/link/termination_signals.h"

#include <pthread.h>
#include <signal.h>

#include <cstdlib>
#include <utility>

#include "common/logging.h"

namespace hopscope::link {
namespace {

sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

void TerminationSignals::Block() {
  const sigset_t signals = Signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

TerminationSignals::TerminationSignals(std::function<void(int signal)> on_first)
    : on_first_(std::move(on_first)), thread_([this] { Loop(); }) {}

TerminationSignals::~TerminationSignals() {
  ending_ = true;
  // Wakes sigwait in that thread alone.
  pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
}

void TerminationSignals::Loop() {
  const sigset_t signals = Signals();
  bool is_first = true;
  while (true) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (ending_) return;
    if (!is_first) {
      common::Log(spdlog::level::warn, "second signal: exiting at once", {{"signal", signal}});
      std::_Exit(128 + signal);
    }
    is_first = false;
    common::Log(spdlog::level::info, "signal: stopping; a second one exits at once",
                {{"signal", signal}});
    on_first_(signal);
  }
}

}  // namespace hopscope::link

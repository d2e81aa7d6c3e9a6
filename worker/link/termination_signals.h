// SIGTERM and SIGINT as calls on a thread of its own: the first one asks the program to stop, the
// second ends it at once with exit code 128 + signal.
//
//   TerminationSignals::Block();  // first thing in main, before any thread exists
//   TerminationSignals signals([&loop](int) { loop.RequestStop(); });
#ifndef HOPSCOPE_WORKER_LINK_TERMINATION_SIGNALS_H_
#define HOPSCOPE_WORKER_LINK_TERMINATION_SIGNALS_H_

#include <atomic>
#include <functional>
#include <thread>

namespace hopscope::link {

class TerminationSignals {
 public:
  // Blocks both signals in this thread and those that it starts from now on.
  static void Block();

  // `on_first` is called once, with the signal. Needs Block.
  explicit TerminationSignals(std::function<void(int signal)> on_first);
  // Signals that come later wait.
  ~TerminationSignals();
  TerminationSignals(const TerminationSignals&) = delete;
  TerminationSignals& operator=(const TerminationSignals&) = delete;

 private:
  void Loop();

  const std::function<void(int signal)> on_first_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_TERMINATION_SIGNALS_H_

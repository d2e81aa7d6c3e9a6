// Threads that may block, for work that gRPC's own threads must not do. The queue is bounded: what
// does not fit is refused at once rather than left to wait beyond its caller's patience.
//
// Tasks start in the order in which they were submitted. Thread-safe.
#ifndef HOPSCOPE_SERVER_RPC_EXECUTOR_H_
#define HOPSCOPE_SERVER_RPC_EXECUTOR_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "common/mutex.h"

namespace hopscope::rpc {

class Executor {
 public:
  struct Options {
    // Threads, which is also how many store operations are in progress at once.
    int threads = 16;
    // Tasks that wait for a thread.
    size_t max_queue = 4096;
  };

  explicit Executor(Options options);
  // As Shutdown().
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // False, and the task is dropped, where the queue is full or Shutdown() was called. Never blocks.
  [[nodiscard]] bool TrySubmit(std::function<void()> task);

  // Runs what is queued, takes nothing new, and waits for the threads. Not from a task.
  void Shutdown();

 private:
  void Work();

  const size_t max_queue_;
  common::Mutex mutex_;
  common::CondVar changed_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

// A view of an executor in which at most `width` tasks run at once, in order: hundreds of waiters
// that wake together take turns, and leave threads to others. Its queue has no bound of its own:
// submitters have at most one task in it each. Outlives its tasks. Thread-safe.
class ExecutorLane {
 public:
  ExecutorLane(Executor* executor, int width) : executor_(executor), width_(width) {}

  // False, and the task is dropped, where the lane stands still and the executor takes nothing.
  // Never blocks.
  [[nodiscard]] bool TrySubmit(std::function<void()> task);

 private:
  void Run();

  Executor* const executor_;
  const int width_;
  common::Mutex mutex_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hopscope::rpc

#endif  // HOPSCOPE_SERVER_RPC_EXECUTOR_H_

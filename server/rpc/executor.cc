#include "server/rpc/executor.h"

#include <utility>

namespace hopscope::rpc {

Executor::Executor(Options options) : max_queue_(options.max_queue) {
  for (int i = 0; i < options.threads; ++i) threads_.emplace_back([this] { Work(); });
}

Executor::~Executor() { Shutdown(); }

bool Executor::TrySubmit(std::function<void()> task) {
  common::MutexLock lock(&mutex_);
  if (stopping_ || queue_.size() >= max_queue_) return false;
  queue_.push_back(std::move(task));
  changed_.Signal();
  return true;
}

void Executor::Shutdown() {
  {
    common::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Executor::Work() {
  while (true) {
    std::function<void()> task;
    {
      common::MutexLock lock(&mutex_);
      while (queue_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    task();
  }
}

bool ExecutorLane::TrySubmit(std::function<void()> task) {
  common::MutexLock lock(&mutex_);
  if (running_ < width_ && executor_->TrySubmit([this] { Run(); })) {
    ++running_;
  } else if (running_ == 0) {
    return false;
  }
  queue_.push_back(std::move(task));
  return true;
}

void ExecutorLane::Run() {
  while (true) {
    std::function<void()> task;
    {
      common::MutexLock lock(&mutex_);
      if (queue_.empty()) {
        --running_;
        return;
      }
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    task();
    task = nullptr;
    // To the back of the executor's queue after each task, so that others have their turn.
    common::MutexLock lock(&mutex_);
    if (queue_.empty()) {
      --running_;
      return;
    }
    if (executor_->TrySubmit([this] { Run(); })) return;
  }
}

}  // namespace hopscope::rpc

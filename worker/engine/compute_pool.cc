#include "worker/engine/compute_pool.h"

#include <utility>

#include "worker/engine/model/torch_runtime.h"

namespace hopscope::engine {

ComputePool::ComputePool(int threads) {
  threads_.reserve(threads);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
}

ComputePool::~ComputePool() {
  {
    common::MutexLock lock(&mutex_);
    closing_ = true;
  }
  changed_.SignalAll();
  for (std::thread& thread : threads_) thread.join();
}

void ComputePool::Submit(Work work) {
  {
    common::MutexLock lock(&mutex_);
    queue_.push_back(std::move(work));
  }
  changed_.Signal();
}

void ComputePool::Loop() {
  UseOneTorchThread();
  ForwardPass pass;
  while (true) {
    Work work;
    {
      common::MutexLock lock(&mutex_);
      while (queue_.empty() && !closing_) changed_.Wait(&mutex_);
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work(pass);
  }
}

}  // namespace hopscope::engine

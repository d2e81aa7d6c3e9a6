// Threads that run forward passes: each computes on itself alone and keeps its own buffers.
//
// Work is started in the order in which it was handed in, whichever unit it belongs to.
// Thread-safe.
#ifndef HOPSCOPE_WORKER_ENGINE_COMPUTE_POOL_H_
#define HOPSCOPE_WORKER_ENGINE_COMPUTE_POOL_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "common/mutex.h"
#include "worker/engine/model/forward_pass.h"

namespace hopscope::engine {

class ComputePool {
 public:
  using Work = std::function<void(ForwardPass& pass)>;

  // `threads` is at least 1.
  explicit ComputePool(int threads);
  // Finishes the work that was handed in.
  ~ComputePool();

  void Submit(Work work);

  int threads() const { return static_cast<int>(threads_.size()); }

 private:
  void Loop();

  common::Mutex mutex_;
  common::CondVar changed_;
  std::deque<Work> queue_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_COMPUTE_POOL_H_

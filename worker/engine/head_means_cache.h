// Means of all heads' outputs (scorers/head_means.h) by checkpoint and kind of sequence, the least
// recently used ones given up first.
//
// The means are those of the first 256 sequences of the validation split that are otherwise like
// the unit's: task, hops, window, padding, added tokens, seed. They are a pure function of these,
// the checkpoint and the dtype, whether they come out of the cache or not. Thread-safe; means are
// computed once however many ask for them at the same time.
#ifndef HOPSCOPE_WORKER_ENGINE_HEAD_MEANS_CACHE_H_
#define HOPSCOPE_WORKER_ENGINE_HEAD_MEANS_CACHE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "hopscope/v1/dispatch.pb.h"
#include "worker/engine/compute_pool.h"
#include "worker/engine/engine.h"
#include "worker/engine/model/head_replacement.h"
#include "worker/engine/model/model.h"

namespace hopscope::engine {

// Sequences that a mean rests on.
inline constexpr int64_t kHeadMeansItems = 256;

// The means for sequences like `sequences`, computed on the pool. Errors are those of Evaluate.
absl::StatusOr<std::shared_ptr<const HeadMeans>> ComputeHeadMeans(const Model& model,
                                                                  const v1::SequenceSpec& sequences,
                                                                  const CancelFlag& cancel,
                                                                  ComputePool* pool);

class HeadMeansCache {
 public:
  // Keeps at most so many bytes of means; those that a unit still uses live on beside it.
  explicit HeadMeansCache(int64_t bytes) : bytes_(bytes) {}

  // `digest` is the model's. CANCELLED, also while waiting for another unit's computation; else the
  // errors of ComputeHeadMeans.
  absl::StatusOr<std::shared_ptr<const HeadMeans>> Get(const std::string& digest,
                                                       const Model& model,
                                                       const v1::SequenceSpec& sequences,
                                                       const CancelFlag& cancel, ComputePool* pool);

  // Bytes of means that are kept.
  int64_t KeptBytes() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const HeadMeans> means;  // null while they are computed
  };

  std::list<Entry>::iterator Find(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Shrink() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t bytes_;
  mutable common::Mutex mutex_;
  common::CondVar changed_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // most recently used first
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_HEAD_MEANS_CACHE_H_

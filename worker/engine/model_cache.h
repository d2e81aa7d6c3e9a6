// Loaded checkpoints, by content digest and number format, the least recently used ones given up
// first.
//
// A checkpoint's files are digested before and after they are read, and the digest compared with
// the one asked for: what is in the cache is what its key says. Thread-safe; a model is loaded once
// however many ask for it at the same time.
#ifndef HOPSCOPE_WORKER_ENGINE_MODEL_CACHE_H_
#define HOPSCOPE_WORKER_ENGINE_MODEL_CACHE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/model_root.h"
#include "common/mutex.h"
#include "worker/engine/engine.h"
#include "worker/engine/model/model.h"

namespace hopscope::engine {

class ModelCache {
 public:
  struct Options {
    const checkpoint::ModelRoot* model_root = nullptr;  // must outlive the cache
    Device device;
    // Bytes of weights to keep. Models that are in use are kept beyond it.
    int64_t bytes = 0;
  };

  explicit ModelCache(Options options) : options_(options) {}

  // The model, loaded where it is not there yet; `load_seconds`, which may be null, says how long
  // that took. FAILED_PRECONDITION with reason CHECKPOINT: no such checkpoint, unusable, or of
  // another digest. RESOURCE_EXHAUSTED with reason OUT_OF_MEMORY. CANCELLED while waiting for
  // another thread's loading.
  absl::StatusOr<std::shared_ptr<const Model>> Get(const v1::CheckpointRef& checkpoint,
                                                   v1::Dtype dtype, const CancelFlag& cancel,
                                                   double* load_seconds);

  // Of the models that are loaded, most recently used first, each once.
  std::vector<std::string> Digests() const;

  int64_t LoadedBytes() const;

 private:
  struct Entry {
    std::string digest;
    v1::Dtype dtype = v1::DTYPE_UNSPECIFIED;
    std::shared_ptr<const Model> model;  // null while it is being loaded
  };

  absl::StatusOr<std::shared_ptr<const Model>> Load(const v1::CheckpointRef& checkpoint,
                                                    v1::Dtype dtype) const;
  std::list<Entry>::iterator Find(const std::string& digest, v1::Dtype dtype)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Shrink() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable common::Mutex mutex_;
  common::CondVar changed_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // most recently used first
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_MODEL_CACHE_H_

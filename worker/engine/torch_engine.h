// The engine that computes with LibTorch, on CPU threads or one CUDA device.
//
// The contract is engine.h's. Results are bit-identical within a kind: on CPUs that is the
// instruction set, the processor's maker, the LibTorch version and the engine's own version; the
// number of threads is not part of it, as every sequence is computed by one thread. Free of
// LibTorch types.
#ifndef HOPSCOPE_WORKER_ENGINE_TORCH_ENGINE_H_
#define HOPSCOPE_WORKER_ENGINE_TORCH_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/model_root.h"
#include "worker/engine/compute_pool.h"
#include "worker/engine/engine.h"
#include "worker/engine/head_means_cache.h"
#include "worker/engine/model_cache.h"
#include "worker/engine/sequence_source.h"

namespace hopscope::engine {

class TorchEngine : public Engine {
 public:
  struct Options {
    // Where checkpoints lie; must outlive the engine.
    const checkpoint::ModelRoot* model_root = nullptr;
    // "cpu", "cuda", "cuda:N", or "auto": the first CUDA device where there is one, else the CPU.
    std::string device = "auto";
    // Threads that compute; 0: one for each processor that this process may use.
    int threads = 0;
    // Bytes of weights that stay loaded; 0: a quarter of the device's memory.
    int64_t cache_bytes = 0;
  };

  // Call it once, before the process starts other threads that use the environment or LibTorch.
  // INVALID_ARGUMENT for a device or number that there is not; FAILED_PRECONDITION with reason
  // CUDA_UNAVAILABLE where CUDA is asked for by name and cannot be used.
  static absl::StatusOr<std::unique_ptr<TorchEngine>> Create(Options options);

  void Describe(v1::WorkerDescription* description) const override;
  absl::StatusOr<v1::UnitResult> Run(const v1::WorkUnit& unit, const CancelFlag& cancel,
                                     RunStatistics* statistics) override;
  std::vector<std::string> LoadedDigests() const override { return cache_.Digests(); }
  int64_t LoadedBytes() const override { return cache_.LoadedBytes(); }
  bool Healthy() const override { return healthy_.load(std::memory_order_relaxed); }

 private:
  TorchEngine(const Options& options, Device device, v1::WorkerDescription description);

  // What a unit computes on, and what it asks of a model.
  struct UnitSequences {
    std::vector<Sequence> list;  // those that `source` hands out, where it does not make them
    std::unique_ptr<SequenceSource> source;
    int64_t vocab_size = 0;
    int64_t longest = 0;  // tokens of a sequence
  };
  absl::StatusOr<UnitSequences> FindSequences(const v1::WorkUnit& unit,
                                              const CancelFlag& cancel) const;

  absl::StatusOr<v1::UnitResult> RunUnit(const v1::WorkUnit& unit, const UnitSequences& sequences,
                                         const CancelFlag& cancel, RunStatistics* statistics);

  const Device device_;
  const v1::WorkerDescription description_;
  std::atomic<bool> healthy_{true};
  ModelCache cache_;
  HeadMeansCache head_means_;
  ComputePool pool_;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_TORCH_ENGINE_H_

// What a worker computes with: one interface, with the LibTorch engine and a fake behind it.
//
// Contract
// 1. A result is a pure function of the unit, the checkpoint's content, and the engine's kind and
// dtype. It does not
//    depend on threads, on what ran before or runs beside it, nor on the machine within a kind: bit
//    for bit.
// 2. An item whose logits or scores hold a NaN or an infinity counts in items_failed (reason
// NUMERIC) and in nothing
//    else.
// 3. Errors carry an ErrorInfo whose reason is the attempt's: CHECKPOINT, OUT_OF_MEMORY, INTERNAL.
// A cancelled run
//    returns CANCELLED within a second.
// 4. Thread-safe: as many units at once as capacity() says.
#ifndef HOPSCOPE_WORKER_ENGINE_ENGINE_H_
#define HOPSCOPE_WORKER_ENGINE_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hopscope/v1/dispatch.pb.h"
#include "worker/engine/tokens_reader.h"

namespace hopscope::engine {

// Set by the link when a unit is to stop; the engine looks at it between layers and attention
// tiles.
class CancelFlag {
 public:
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> cancelled_{false};
};

// Time and work of a run, for metrics; never part of a result.
struct RunStatistics {
  int64_t sequences = 0;
  int64_t tokens = 0;
  double model_load_seconds = 0;  // 0 where the checkpoint was loaded already
  double forward_seconds = 0;     // summed over threads
  std::vector<std::pair<std::string, double>> score_seconds;  // by scorer, summed over threads
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Fills in what the engine knows of itself: device, device_name, memory_bytes, dtypes,
  // model_families, tasks, scorers, kind, capacity, threads.
  virtual void Describe(v1::WorkerDescription* description) const = 0;

  // Computes a unit. Blocking; `statistics` may be null.
  virtual absl::StatusOr<v1::UnitResult> Run(const v1::WorkUnit& unit, const CancelFlag& cancel,
                                             RunStatistics* statistics) = 0;

  // Digests of the loaded checkpoints, most recently used first.
  virtual std::vector<std::string> LoadedDigests() const = 0;

  // Bytes of weights that are loaded.
  virtual int64_t LoadedBytes() const = 0;

  // False where the device no longer answers; /livez then fails.
  virtual bool Healthy() const = 0;

  // Where the sequences of task "tokens" come from; without it, its units fail. Set before the
  // first run; must outlive the last.
  void set_tokens_reader(TokensReader* reader) { tokens_reader_ = reader; }

 protected:
  // The sequences of a unit of task "tokens".
  absl::StatusOr<TokensReader::Lines> ReadTokens(const v1::WorkUnit& unit,
                                                 const CancelFlag& cancel) const {
    if (tokens_reader_ == nullptr) {
      return absl::InternalError("this worker cannot read uploaded sequences");
    }
    return tokens_reader_->Read(unit.sequences().tokens_digest(), unit.first_item(),
                                unit.item_count(), cancel);
  }

 private:
  TokensReader* tokens_reader_ = nullptr;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_ENGINE_H_

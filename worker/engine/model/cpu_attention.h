// Causal attention of one layer on a CPU: rotation, logits, softmax and weighted values, a run of
// queries at a time.
//
// Free of LibTorch types. A call uses the calling thread alone; thread-safe where scratches differ.
#ifndef HOPSCOPE_WORKER_ENGINE_MODEL_CPU_ATTENTION_H_
#define HOPSCOPE_WORKER_ENGINE_MODEL_CPU_ATTENTION_H_

#include <cstdint>

#include "common/checkpoint/architecture.h"
#include "worker/engine/engine.h"
#include "worker/engine/model/activations.h"
#include "worker/engine/model/aligned_buffer.h"
#include "worker/engine/model/cpu_head_replacement.h"
#include "worker/engine/model/head_replacement.h"
#include "worker/engine/model/rotary_table.h"

namespace hopscope::engine {

// Buffers kept from call to call.
template <typename T>
struct AttentionScratch {
  AlignedBuffer<T> keys;     // turned keys of one head [tokens, d_head]
  AlignedBuffer<T> queries;  // turned queries of one run
  AlignedBuffer<T> weights;  // [queries of a run, tokens]
  ReplacedLogits<T> replaced;
};

// Rows are sequence * tokens + token; heads lie side by side in a row.
template <typename T>
struct AttentionCall {
  const checkpoint::Architecture* architecture = nullptr;
  const RotaryTable<T>* rotary = nullptr;          // null where the model does not rotate
  const RotaryTable<T>* rotary_means = nullptr;    // the same; needed where logits are replaced
  const HeadReplacements* replacements = nullptr;  // may be null
  int64_t layer = 0;
  int64_t sequences = 0;
  int64_t tokens = 0;
  int64_t first_query = 0;
  int64_t queries_per_tile = 0;
  const T* keys = nullptr;
  const T* values = nullptr;
  const T* queries = nullptr;
  int64_t in_stride = 0;  // of the three above
  T* out = nullptr;
  int64_t out_stride = 0;
  ForwardObserver* observer = nullptr;  // may be null
  const CancelFlag* cancel = nullptr;   // may be null
};

// False where it was cancelled.
template <typename T>
bool CpuAttention(const AttentionCall<T>& call, AttentionScratch<T>* scratch);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_MODEL_CPU_ATTENTION_H_

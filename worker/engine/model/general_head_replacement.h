// Replaced heads (head_replacement.h) by LibTorch's general operators, on any device.
//
// For this folder's .cc files only; may throw LibTorch's exceptions. Thread-safe.
#ifndef HOPSCOPE_WORKER_ENGINE_MODEL_GENERAL_HEAD_REPLACEMENT_H_
#define HOPSCOPE_WORKER_ENGINE_MODEL_GENERAL_HEAD_REPLACEMENT_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "worker/engine/model/layer_ops.h"

namespace hopscope::engine {

// A run of queries of all heads of a layer. Queries and keys are those before position is applied.
struct AttentionRun {
  at::Tensor queries;       // [sequences, heads, queries of the run, d_head]
  at::Tensor keys;          // [sequences, kv_heads, tokens, d_head]
  int64_t first_query = 0;  // of the run
  int64_t first_key = 0;    // of the logits' columns
};

// Overwrites the logits [sequences, heads, queries, keys] of heads that know position or content
// alone; scale and bias are in them before and after. Keys that a query does not see may hold
// anything.
void ReplaceLogits(const AttentionInputs& inputs, const AttentionRun& run,
                   const at::Tensor& logits);

// Overwrites the outputs [sequences, heads, tokens, d_head] of heads that do not come from
// attention weights, for queries first_query .. first_query + queries - 1.
void ReplaceOutputs(const AttentionInputs& inputs, int64_t first_query, int64_t queries,
                    const at::Tensor& out);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_MODEL_GENERAL_HEAD_REPLACEMENT_H_

// What a forward pass costs, estimated from the architecture alone: the plan of a job rests on it,
// so it depends on nothing but the config.
//
// Pure functions; thread-safe.
#ifndef HOPSCOPE_COMMON_CHECKPOINT_COST_H_
#define HOPSCOPE_COMMON_CHECKPOINT_COST_H_

#include <cstdint>

#include "common/checkpoint/architecture.h"

namespace hopscope::checkpoint {

// Which positions have their logits computed.
enum class Outputs {
  kEveryPosition,
  // Every position of every layer, but one row of logits: what scores of several queries need.
  kEveryQuery,
  // Only the last: its query, attention row, output projection and MLP in the last layer, and one
  // row of logits. The last layer's keys and values are still needed for every position.
  kLastPosition,
};

// Floating-point operations of the forward pass over one sequence of `tokens` tokens, 2 for each
// multiply-add.
//
// Counted: the query, key, value and output projections, the MLP (three matrices where it is
// gated), and the head; and for attention q.k and the weighted sum of values, 4 * heads * d_head
// for each pair of query and key. Pairs are counted as a full tokens x tokens square, since that is
// what a dense kernel computes: neither the causal half nor a window is taken off. Not counted:
// norms, activations, softmax, rotation, embedding look-ups, biases (a few percent).
//
// `first_layer`: the pass begins with the residual stream that enters that layer.
double ForwardFlops(const Architecture& architecture, int64_t tokens, Outputs outputs,
                    int64_t first_layer = 0);

// Bytes of all matrices at `bytes_per_element`; gains and biases (below one percent) are left out.
double WeightBytes(const Architecture& architecture, int64_t bytes_per_element);

}  // namespace hopscope::checkpoint

#endif  // HOPSCOPE_COMMON_CHECKPOINT_COST_H_

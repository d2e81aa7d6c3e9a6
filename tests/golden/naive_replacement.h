// Attention weights of replaced heads, written down plainly from their definition: every logit of
// every content at every slot, in float64. What the engine's closed forms are compared with.
#ifndef HOPSCOPE_TESTS_GOLDEN_NAIVE_REPLACEMENT_H_
#define HOPSCOPE_TESTS_GOLDEN_NAIVE_REPLACEMENT_H_

#include <cstdint>
#include <vector>

#include "common/checkpoint/architecture.h"
#include "worker/engine/model/head_replacement.h"

namespace hopscope::golden {

// Weights of query `query` over keys 0 .. query. `keys` [tokens][d_head] and `own` [d_head] are
// those of one head before position is applied.
std::vector<double> NaiveWeights(const checkpoint::Architecture& architecture,
                                 engine::ReplacementKind kind, int64_t layer, int64_t head,
                                 const std::vector<std::vector<double>>& keys,
                                 const std::vector<double>& own, int64_t query);

}  // namespace hopscope::golden

#endif  // HOPSCOPE_TESTS_GOLDEN_NAIVE_REPLACEMENT_H_

// Positional and symbolic score of one head at one query where blocks of keys are swapped instead
// of single keys: what long prompts are scored by (arXiv 2511.11579, App. B.3).
//
// With d_B the mean attention over block B, swapping blocks I and J moves content J[t] to slot I[t]
// and back for every offset t below the smaller size; a larger block keeps the rest in place. With
// A and D as in swap_scores.h, the mean attention in I's slots is then, up to the softmax's
// denominator,
//   ( sum_{t < c} e^A[J[t]][I[t]] + sum_{t >= c} e^A[I[t]][I[t]] ) / |I|,  c = min(|I|, |J|).
// The denominator cancels in a cosine, so only those logits are needed, m (m - 1) / 2 times 2 c of
// them, and the layer is not run again. Pairs whose alpha is 0 in float64 are left out.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_BLOCK_SWAPS_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_BLOCK_SWAPS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "worker/engine/engine.h"
#include "worker/engine/scorers/swap_accumulator.h"
#include "worker/engine/scorers/swap_scores.h"

namespace hopscope::engine {

using KeyBlocks = std::vector<std::pair<int64_t, int64_t>>;  // [begin, end), rising, not empty

// `count` equal blocks of the keys first .. keys - 1, what is left over in front; none where there
// are fewer keys than blocks.
KeyBlocks EqualBlocks(int64_t first, int64_t keys, int64_t count);

// As ComputeSwapScores, which see; has_swaps is false below two blocks.
template <typename T>
bool ComputeBlockScores(const double* own_logits, int64_t keys, double self_logit,
                        const KeyBlocks& blocks, const std::vector<double>& taus,
                        const SwapExtras& extras, MovedLogits<T>* moved, const CancelFlag* cancel,
                        HeadScores* scores);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_BLOCK_SWAPS_H_

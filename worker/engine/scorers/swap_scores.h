// Positional and symbolic score of one head on one input at one query (arXiv 2605.31558, App. D),
// in closed form.
//
// Let A[a][p] be the logit of the query against content a standing in slot p, keys 0 .. m-1, and D
// the attention row of the query (softmax over A[j][j] and the query's logit against itself).
// Swapping keys i and j turns the pair of attention weights at slots (i, j) from (e^A[i][i],
// e^A[j][j]) into (e^A[j][i], e^A[i][j]), up to a factor that cancels in a cosine. So, with alpha
// the softmax over all swaps i < j of |D_i - D_j| / tau,
//   positional = sum alpha cos((e^A[j][i], e^A[i][j]), (e^A[i][i], e^A[j][j]))
//   symbolic   = sum alpha cos((e^A[j][i], e^A[i][j]), (e^A[j][j], e^A[i][i]))
// without running the layer again. D and alpha are float64 whatever the logits are: alpha divides
// D's error by tau.
//
// Keys are visited in the order of falling weight, in blocks: a block whose alphas are all 0 in
// float64 is left out with its logits, and memory does not grow with m^2.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_SWAP_SCORES_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_SWAP_SCORES_H_

#include <cstdint>
#include <vector>

#include "worker/engine/engine.h"
#include "worker/engine/model/aligned_buffer.h"
#include "worker/engine/scorers/swap_accumulator.h"

namespace hopscope::engine {

// Logits of contents in slots that are not their own. Keys are named by their place in an order.
template <typename T>
class MovedLogits {
 public:
  virtual ~MovedLogits() = default;

  // From now on place i stands for key order[i], i < keys.
  virtual void SetOrder(const int32_t* order, int64_t keys) = 0;

  // out[i * stride + j] = logit of content first_content + i in slot first_slot + j.
  virtual void Compute(int64_t first_content, int64_t contents, int64_t first_slot, int64_t slots,
                       T* out, int64_t stride) = 0;

  // out[j * stride + i] = logit of content first_content + i in slot first_slot + j.
  virtual void ComputeTransposed(int64_t first_content, int64_t contents, int64_t first_slot,
                                 int64_t slots, T* out, int64_t stride) = 0;

  // out[i] = logit of content first_content + i in slot first_slot + i, i < count; these are keys
  // in their own order.
  virtual void ComputeAlong(int64_t first_content, int64_t first_slot, int64_t count,
                            double* out) = 0;
};

struct HeadScores {
  bool has_swaps = false;  // false below two keys: no scores
  int64_t swapped = 0;     // keys, or blocks of them, that there are pairs of
  SwapMeans means;
  double self_mass = 0;  // the query's attention to itself; 1 - self_mass is scored
};

// Buffers kept from call to call.
template <typename T>
struct SwapScratch {
  std::vector<int32_t> order;
  std::vector<double> logits;
  std::vector<double> weights;
  std::vector<double> before;  // attention on all places before this one
  std::vector<double> from;    // attention on this place and all after it
  AlignedBuffer<T> forward;
  AlignedBuffer<T> backward;
};

// `own_logits` [keys] are the A[j][j]. Scores are NaN where a logit is not finite. False where it
// was cancelled. At most kMaxTaus taus, each above 0. Without extras a faster loop does the same.
template <typename T>
bool ComputeSwapScores(const double* own_logits, int64_t keys, double self_logit,
                       const std::vector<double>& taus, MovedLogits<T>* moved,
                       const CancelFlag* cancel, SwapScratch<T>* scratch, HeadScores* scores,
                       const SwapExtras& extras = {});

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_SWAP_SCORES_H_

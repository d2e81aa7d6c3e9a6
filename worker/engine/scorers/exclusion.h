// Exclusion principle of positional and symbolic heads (arXiv 2511.11579, Theorem 1) for one head
// at one query: logits vary no more than the head's departures from both behaviours allow.
//
// With m keys before the query, A[a][p] the logit of content a in slot p, and lambda_j = A[j][j],
// the theorem bounds the variance of lambda by a sum over all m! permutations of how far the head
// is from positional (||d_pos||^2) and from symbolic (||d_sym||^2). A content stands in each slot
// in (m - 1)! of them, so that sum is, without a factorial,
//   Var(lambda) <= 1/m^2 sum_{a,p} [ (A[a][p] - A[p][p])^2 + (A[a][p] - A[a][a])^2 ].
// A head that is positional and symbolic at once has even logits.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_EXCLUSION_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_EXCLUSION_H_

#include <cstdint>

#include "worker/engine/engine.h"
#include "worker/engine/scorers/swap_scores.h"

namespace hopscope::engine {

// Var(lambda), over m; 0 without keys.
double LogitVariance(const double* own_logits, int64_t keys);

// The right-hand side; 0 without keys. False where it was cancelled. Cost: all m^2 logits.
template <typename T>
bool ComputeExclusionBound(const double* own_logits, int64_t keys, MovedLogits<T>* moved,
                           const CancelFlag* cancel, SwapScratch<T>* scratch, double* bound);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_EXCLUSION_H_

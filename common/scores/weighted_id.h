// The frequency that a head uses on average, as one number.
//
// With u_k the mean over prompts of the largest logit of plane k (scorer frequency_use, metric
// max_logit), k = 1 .. K from the fastest,
//   weighted ID = sum_k softmax(u)_k k
// which, rounded, is the "weighted averaged ID" of arXiv 2605.31558, Table 1: the paper does not
// give the formula; this one reproduces all of its 24 entries from its Fig. 8. It is a function of
// the means, not a mean over prompts, and has no standard error.
//
// Pure function; thread-safe.
#ifndef HOPSCOPE_COMMON_SCORES_WEIGHTED_ID_H_
#define HOPSCOPE_COMMON_SCORES_WEIGHTED_ID_H_

#include <cstdint>

namespace hopscope::scores {

// From 1 to `planes`; NaN where a number is not finite or there is none.
double WeightedId(const double* max_logits, int64_t planes);

}  // namespace hopscope::scores

#endif  // HOPSCOPE_COMMON_SCORES_WEIGHTED_ID_H_

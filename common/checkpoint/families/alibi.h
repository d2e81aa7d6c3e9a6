// ALiBi: slopes of the linear attention biases, one a head (Press et al., arXiv 2108.12409), as the
// two families that use them compute them. The two differ where the number of heads is no power of
// two.
#ifndef HOPSCOPE_COMMON_CHECKPOINT_FAMILIES_ALIBI_H_
#define HOPSCOPE_COMMON_CHECKPOINT_FAMILIES_ALIBI_H_

#include <cstdint>
#include <vector>

namespace hopscope::checkpoint {

// BLOOM: with p = 2^floor(log2 heads), b^1 .. b^p for b = 2^(-8/p); the rest are odd powers of
// 2^(-8/(2p)).
std::vector<double> BloomSlopes(int64_t heads);

// MPT: with p = 2^ceil(log2 heads), 2^(-bias_max m / p) for m = 1 .. p; where p is larger than
// heads, those of even m, then those of odd m, and of these the first.
std::vector<double> MptSlopes(int64_t heads, double bias_max);

}  // namespace hopscope::checkpoint

#endif  // HOPSCOPE_COMMON_CHECKPOINT_FAMILIES_ALIBI_H_

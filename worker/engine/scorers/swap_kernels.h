// The innermost loop of the positional and symbolic scores: sums over pairs of keys, for CPUs.
//
// Pure functions; thread-safe.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_SWAP_KERNELS_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_SWAP_KERNELS_H_

#include <stdint.h>

namespace hopscope::engine {

// For one temperature, over swaps of two keys: sum of alpha, of alpha times the positional cosine,
// of alpha times the symbolic one. alpha is exp((|D_i - D_j| - largest) / tau), so that the largest
// is 1.
struct SwapSums {
  double weight = 0;
  double positional = 0;
  double symbolic = 0;
};

// A block of swaps (i, j): keys i are the block's rows, keys j its columns, both in the order of
// falling logits; pairs where j does not come after i in that order are left out. Arrays have room
// for whole vectors past their end: kSwapPadding elements.
template <typename T>
struct SwapBlock {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t first_row = 0;  // places in the order
  int64_t first_column = 0;
  const T* forward = nullptr;   // [rows, stride]: logit of content i in slot j
  const T* backward = nullptr;  // [rows, stride]: logit of content j in slot i
  int64_t stride = 0;
  const double* row_logits = nullptr;      // of content i in its own slot
  const double* row_weights = nullptr;     // D_i
  const double* column_logits = nullptr;   // of content j in its own slot
  const double* column_weights = nullptr;  // D_j
  double largest_gap = 0;                  // largest |D_i - D_j| of all blocks
  int64_t taus = 0;
  const double* inverse_taus = nullptr;  // [taus]
  double smallest_inverse_tau = 0;
};

inline constexpr int64_t kSwapPadding = 16;
inline constexpr int64_t kMaxTaus = 16;

// Where (|D_i - D_j| - largest) / tau lies below this, alpha is 0 in float64 and the swap is left
// out.
inline constexpr double kLowestExponent = -708.4;

// Adds a block's swaps to `sums` [taus].
void AddSwaps(const SwapBlock<float>& block, SwapSums* sums);
void AddSwaps(const SwapBlock<double>& block, SwapSums* sums);

// Inner products of rows of two matrices, in float64: out[r] = a_r . b_r.
void DotRows(int64_t rows, int64_t columns, const float* a, int64_t a_stride, const float* b,
             int64_t b_stride, double* out);
void DotRows(int64_t rows, int64_t columns, const double* a, int64_t a_stride, const double* b,
             int64_t b_stride, double* out);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_SWAP_KERNELS_H_

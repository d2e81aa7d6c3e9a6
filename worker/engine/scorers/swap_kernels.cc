// Compiled once per instruction set; see worker/engine/model/simd.h.
#include "worker/engine/scorers/swap_kernels.h"

#include "worker/engine/model/simd.h"

namespace hopscope::engine::HOPSCOPE_ISA {
namespace {

using Doubles = Vector<double>;
using Mask = Vector<int64_t>;
constexpr int kStep = kLanes<double>;

// kStep numbers, widened.
inline Doubles Widen(const double* from) { return Load(from); }

inline Doubles Widen(const float* from) {
  typedef float Narrow __attribute__((vector_size(kVectorBytes / 2)));
  Narrow value;
  memcpy(&value, from, sizeof(value));
  return __builtin_convertvector(value, Doubles);
}

inline Doubles Abs(Doubles x) { return x < 0.0 ? -x : x; }

inline Mask LaneIndex() {
  Mask index;
  for (int i = 0; i < kStep; ++i) index[i] = i;
  return index;
}

template <typename T>
void AddBlock(const SwapBlock<T>& block, SwapSums* sums) {
  Doubles weight[kMaxTaus] = {};
  Doubles positional[kMaxTaus] = {};
  Doubles symbolic[kMaxTaus] = {};
  const Mask lane = LaneIndex();
  const Doubles zero = {};
  for (int64_t row = 0; row < block.rows; ++row) {
    const T* const forward = block.forward + row * block.stride;
    const T* const backward = block.backward + row * block.stride;
    const double row_logit = block.row_logits[row];
    const double row_weight = block.row_weights[row];
    const int64_t after = block.first_row + row + 1 - block.first_column;
    const int64_t begin = after > 0 ? after : 0;
    for (int64_t first = begin / kStep * kStep; first < block.columns; first += kStep) {
      const int64_t last = first + kStep <= block.columns ? first + kStep - 1 : block.columns - 1;
      // Weights fall along the columns, so the gap D_i - D_j rises.
      const double widest = row_weight - block.column_weights[last];
      if ((widest - block.largest_gap) * block.smallest_inverse_tau < kLowestExponent) continue;
      const Mask column = lane + first;
      const Mask inside = (column >= begin) & (column < block.columns);

      // Only ratios matter to a cosine: (e^x, e^y) is (1, e^(y-x)) up to a factor, so each pair is
      // one exponential of a number that is not positive. The pair before the swap has its larger
      // part first, as row logits are not smaller than column logits; the one after it may not.
      const Doubles moved = Widen(backward + first) - Widen(forward + first);
      const Doubles before = Exp<double>(Load(block.column_logits + first) - row_logit);
      const Doubles after = Exp<double>(-Abs(moved));
      const Doubles norm = Sqrt((1.0 + before * before) * (1.0 + after * after));
      const Doubles same = (1.0 + before * after) / norm;
      const Doubles crossed = (before + after) / norm;
      const Doubles same_order = moved < 0.0 ? crossed : same;
      const Doubles other_order = moved < 0.0 ? same : crossed;

      // In this order of subtractions the largest gap gives exactly 0.
      const Doubles gap = (row_weight - Load(block.column_weights + first)) - block.largest_gap;
      for (int64_t t = 0; t < block.taus; ++t) {
        const Doubles alpha = inside ? Exp<double>(gap * block.inverse_taus[t]) : zero;
        weight[t] += alpha;
        positional[t] += inside ? alpha * same_order : zero;
        symbolic[t] += inside ? alpha * other_order : zero;
      }
    }
  }
  for (int64_t t = 0; t < block.taus; ++t) {
    sums[t].weight += SumLanes<double>(weight[t]);
    sums[t].positional += SumLanes<double>(positional[t]);
    sums[t].symbolic += SumLanes<double>(symbolic[t]);
  }
}

template <typename T>
void DotRowsOf(int64_t rows, int64_t columns, const T* a, int64_t a_stride, const T* b,
               int64_t b_stride, double* out) {
  for (int64_t row = 0; row < rows; ++row) {
    const T* const x = a + row * a_stride;
    const T* const y = b + row * b_stride;
    Doubles sums = {};
    Doubles more = {};
    int64_t c = 0;
    for (; c + 2 * kStep <= columns; c += 2 * kStep) {
      sums += Widen(x + c) * Widen(y + c);
      more += Widen(x + c + kStep) * Widen(y + c + kStep);
    }
    double sum = SumLanes<double>(sums + more);
    for (; c < columns; ++c) sum += static_cast<double>(x[c]) * static_cast<double>(y[c]);
    out[row] = sum;
  }
}

}  // namespace

void AddSwapsFloat32(const SwapBlock<float>& block, SwapSums* sums) { AddBlock(block, sums); }
void AddSwapsFloat64(const SwapBlock<double>& block, SwapSums* sums) { AddBlock(block, sums); }

void DotRowsFloat32(int64_t rows, int64_t columns, const float* a, int64_t a_stride, const float* b,
                    int64_t b_stride, double* out) {
  DotRowsOf(rows, columns, a, a_stride, b, b_stride, out);
}
void DotRowsFloat64(int64_t rows, int64_t columns, const double* a, int64_t a_stride,
                    const double* b, int64_t b_stride, double* out) {
  DotRowsOf(rows, columns, a, a_stride, b, b_stride, out);
}

}  // namespace hopscope::engine::HOPSCOPE_ISA

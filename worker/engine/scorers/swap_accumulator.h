// Weighted means over swaps of two keys, or of two blocks of keys, one swap at a time: everything
// that positional_symbolic may be asked for. The two plain scores of single keys have a faster loop
// (swap_kernels.h).
//
// Of a swap of i and j, v = (D_i, D_j) is the attention before it, v' that in the same slots after
// it, and alpha the softmax over all swaps of |D_i - D_j| / tau (arXiv 2605.31558, App. D):
//   positional          sum alpha cos(v', v)
//   symbolic            sum alpha cos(v', (D_j, D_i))
//   positional_centred  sum alpha cos(v' - c, v - c), c the attention where all is even
//   symbolic_centred    sum alpha cos(v' - c, (D_j, D_i) - c)
//   swapped_mass        sum alpha (attention on all that is swapped)
//   contrast            sum alpha |D_i - D_j| / (D_i + D_j)
// A centred vector of length 0 has cosine 0.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_SWAP_ACCUMULATOR_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_SWAP_ACCUMULATOR_H_

#include <cstddef>
#include <vector>

namespace hopscope::engine {

struct Swap {
  // Logarithms of v and of v', each but for a term that its two numbers share.
  double before_i = 0;
  double before_j = 0;
  double after_i = 0;
  double after_j = 0;
  double weight_i = 0;  // D_i
  double weight_j = 0;
  double mass = 0;
  // v'; looked at where `eps` or `centred` asks for it.
  double moved_i = 0;
  double moved_j = 0;
};

// What is asked for beyond the plain scores.
struct SwapExtras {
  // Each norm of a cosine is at least this, as in torch.cosine_similarity.
  double eps = 0;
  bool centred = false;
  bool guard = false;  // swapped_mass and contrast

  bool any() const { return eps > 0 || centred || guard; }
  bool needs_moved() const { return eps > 0 || centred; }
};

// [taus]; empty where not asked for.
struct SwapMeans {
  std::vector<double> positional;
  std::vector<double> symbolic;
  std::vector<double> positional_centred;
  std::vector<double> symbolic_centred;
  std::vector<double> swapped_mass;
  std::vector<double> contrast;

  void Fill(double value, size_t taus, const SwapExtras& extras);
};

// Centred vectors shorter than this part of c are rounding, and count as 0.
template <typename T>
inline constexpr double kCentredZero = sizeof(T) == 4 ? 1e-5 : 1e-11;

// Attention at the two places after a swap, each the mean over `size` slots. `rest` is the
// attention on all slots that the swap leaves alone, before it; `log_i` and `log_j` are the
// logarithms of the places' means after it, measured by the denominator before it.
struct MovedWeights {
  double i = 0;
  double j = 0;
};
MovedWeights WeightsAfter(double rest, double log_i, double size_i, double log_j, double size_j);

class SwapAccumulator {
 public:
  // `taus` must outlive the object. `largest_gap` is the largest |D_i - D_j|, `uniform` c, and
  // centred vectors shorter than `zero` count as 0.
  SwapAccumulator(const std::vector<double>& taus, const SwapExtras& extras, double largest_gap,
                  double uniform, double zero);

  // Whether a swap with this |D_i - D_j| has an alpha above 0 in float64.
  bool Counts(double gap) const;
  void Add(const Swap& swap);
  SwapMeans Means() const;

 private:
  const std::vector<double>& taus_;
  const SwapExtras extras_;
  const double largest_gap_;
  const double uniform_;
  const double zero_;
  double largest_tau_;
  std::vector<double> weight_;  // [taus]
  SwapMeans sums_;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_SWAP_ACCUMULATOR_H_

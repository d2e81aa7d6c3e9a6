#include "worker/engine/scorers/swap_accumulator.h"

#include <algorithm>
#include <cmath>

#include "worker/engine/scorers/swap_kernels.h"

namespace hopscope::engine {
namespace {

struct Cosines {
  double same = 0;
  double crossed = 0;
};

// Cosines of (e^after_i, e^after_j) with (e^before_i, e^before_j) and with that reversed.
Cosines OfExponentials(const Swap& swap) {
  // Only ratios matter: each pair is (1, e^-|difference|), in one order or the other.
  const double before = swap.before_i - swap.before_j;
  const double after = swap.after_i - swap.after_j;
  const double b = std::exp(-std::abs(before));
  const double a = std::exp(-std::abs(after));
  const double norm = std::sqrt((1 + b * b) * (1 + a * a));
  const double aligned = (1 + a * b) / norm;
  const double opposed = (a + b) / norm;
  return (before < 0) == (after < 0) ? Cosines{aligned, opposed} : Cosines{opposed, aligned};
}

Cosines Centred(const Swap& swap, double uniform, double zero) {
  const double b_i = swap.weight_i - uniform;
  const double b_j = swap.weight_j - uniform;
  const double a_i = swap.moved_i - uniform;
  const double a_j = swap.moved_j - uniform;
  const double before = std::hypot(b_i, b_j);
  const double after = std::hypot(a_i, a_j);
  if (before <= zero || after <= zero) return {};
  return {(a_i * b_i + a_j * b_j) / (before * after), (a_i * b_j + a_j * b_i) / (before * after)};
}

}  // namespace

void SwapMeans::Fill(double value, size_t taus, const SwapExtras& extras) {
  positional.assign(taus, value);
  symbolic.assign(taus, value);
  positional_centred.assign(extras.centred ? taus : 0, value);
  symbolic_centred.assign(extras.centred ? taus : 0, value);
  swapped_mass.assign(extras.guard ? taus : 0, value);
  contrast.assign(extras.guard ? taus : 0, value);
}

MovedWeights WeightsAfter(double rest, double log_i, double size_i, double log_j, double size_j) {
  // Keeps exponentials from overflowing where a moved logit is far above all others.
  const double top = std::max({0.0, log_i, log_j});
  const double i = std::exp(log_i - top);
  const double j = std::exp(log_j - top);
  const double total = rest * std::exp(-top) + size_i * i + size_j * j;
  return {i / total, j / total};
}

SwapAccumulator::SwapAccumulator(const std::vector<double>& taus, const SwapExtras& extras,
                                 double largest_gap, double uniform, double zero)
    : taus_(taus),
      extras_(extras),
      largest_gap_(largest_gap),
      uniform_(uniform),
      zero_(zero),
      largest_tau_(*std::max_element(taus.begin(), taus.end())),
      weight_(taus.size(), 0) {
  sums_.Fill(0, taus.size(), extras);
}

bool SwapAccumulator::Counts(double gap) const {
  // The first part keeps 0 / tau at 0 where the division would be of tiny numbers.
  return gap >= largest_gap_ || (gap - largest_gap_) / largest_tau_ >= kLowestExponent;
}

void SwapAccumulator::Add(const Swap& swap) {
  Cosines cosines = OfExponentials(swap);
  if (extras_.eps > 0) {
    const double clamped = std::min(1.0, std::hypot(swap.weight_i, swap.weight_j) / extras_.eps) *
                           std::min(1.0, std::hypot(swap.moved_i, swap.moved_j) / extras_.eps);
    cosines.same *= clamped;
    cosines.crossed *= clamped;
  }
  const Cosines centred = extras_.centred ? Centred(swap, uniform_, zero_) : Cosines{};
  // |e^x - e^y| / (e^x + e^y), also where both are too small for a number.
  const double contrast =
      extras_.guard ? std::tanh(std::abs(swap.before_i - swap.before_j) / 2) : 0;
  const double gap = std::abs(swap.weight_i - swap.weight_j);
  for (size_t t = 0; t < taus_.size(); ++t) {
    const double exponent = gap >= largest_gap_ ? 0 : (gap - largest_gap_) / taus_[t];
    if (exponent < kLowestExponent) continue;
    const double alpha = std::exp(exponent);
    weight_[t] += alpha;
    sums_.positional[t] += alpha * cosines.same;
    sums_.symbolic[t] += alpha * cosines.crossed;
    if (extras_.centred) {
      sums_.positional_centred[t] += alpha * centred.same;
      sums_.symbolic_centred[t] += alpha * centred.crossed;
    }
    if (extras_.guard) {
      sums_.swapped_mass[t] += alpha * swap.mass;
      sums_.contrast[t] += alpha * contrast;
    }
  }
}

SwapMeans SwapAccumulator::Means() const {
  SwapMeans means = sums_;
  for (std::vector<double>* sums :
       {&means.positional, &means.symbolic, &means.positional_centred, &means.symbolic_centred,
        &means.swapped_mass, &means.contrast}) {
    for (size_t t = 0; t < sums->size(); ++t) (*sums)[t] /= weight_[t];
  }
  return means;
}

}  // namespace hopscope::engine

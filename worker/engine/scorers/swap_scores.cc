#include "worker/engine/scorers/swap_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "worker/engine/scorers/swap_kernels.h"

namespace hopscope::engine {
namespace {

// Keys of a block: two blocks of logits fit a core's cache.
constexpr int64_t kBlock = 128;
constexpr int64_t kStride = kBlock + kSwapPadding;

// Keeps 0 / tau at 0 where 1 / tau would overflow.
constexpr double kLargestInverse = 1e300;

// The swaps of a block one by one, with everything that extras ask for.
template <typename T>
class DetailedSwaps {
 public:
  // Attention stands in scratch->weights, by place. `log_self` is the logarithm of the query's own.
  DetailedSwaps(const std::vector<double>& taus, const SwapExtras& extras, int64_t keys,
                double log_self, double largest_gap, SwapScratch<T>* scratch)
      : extras_(extras),
        self_(std::exp(log_self)),
        sums_(taus, extras, largest_gap, 1 / static_cast<double>(keys + 1),
              kCentredZero<T> / static_cast<double>(keys + 1)),
        before_(scratch->before),
        from_(scratch->from) {
    if (!extras.needs_moved()) return;
    const std::vector<double>& weights = scratch->weights;
    before_.assign(keys + 1, 0);
    from_.assign(keys + 1, 0);
    for (int64_t place = 0; place < keys; ++place) {
      before_[place + 1] = before_[place] + weights[place];
    }
    for (int64_t place = keys - 1; place >= 0; --place) {
      from_[place] = from_[place + 1] + weights[place];
    }
  }

  // `log_total` is the logarithm of the softmax's denominator.
  void Add(const SwapBlock<T>& block, double log_total) {
    for (int64_t row = 0; row < block.rows; ++row) {
      const int64_t i = block.first_row + row;
      for (int64_t column = std::max<int64_t>(0, i + 1 - block.first_column);
           column < block.columns; ++column) {
        if (!sums_.Counts(block.row_weights[row] - block.column_weights[column])) continue;
        const int64_t at = row * block.stride + column;
        Swap swap{.before_i = block.row_logits[row],
                  .before_j = block.column_logits[column],
                  .after_i = static_cast<double>(block.backward[at]),
                  .after_j = static_cast<double>(block.forward[at]),
                  .weight_i = block.row_weights[row],
                  .weight_j = block.column_weights[column],
                  .mass = block.row_weights[row] + block.column_weights[column]};
        if (extras_.needs_moved()) {
          // Weights fall with the place, so the difference of sums keeps its digits.
          const int64_t j = block.first_column + column;
          const double rest = self_ + before_[i] + (from_[i + 1] - from_[j]) + from_[j + 1];
          const MovedWeights after =
              WeightsAfter(rest, swap.after_i - log_total, 1, swap.after_j - log_total, 1);
          swap.moved_i = after.i;
          swap.moved_j = after.j;
        }
        sums_.Add(swap);
      }
    }
  }

  SwapMeans Means() const { return sums_.Means(); }

 private:
  const SwapExtras extras_;
  const double self_;
  SwapAccumulator sums_;
  std::vector<double>& before_;
  std::vector<double>& from_;
};

}  // namespace

template <typename T>
bool ComputeSwapScores(const double* own_logits, int64_t keys, double self_logit,
                       const std::vector<double>& taus, MovedLogits<T>* moved,
                       const CancelFlag* cancel, SwapScratch<T>* scratch, HeadScores* scores,
                       const SwapExtras& extras) {
  const int64_t tau_count = static_cast<int64_t>(taus.size());
  scores->has_swaps = keys >= 2;
  scores->swapped = keys;

  double top = self_logit;
  bool finite = std::isfinite(self_logit);
  for (int64_t j = 0; j < keys; ++j) {
    finite = finite && std::isfinite(own_logits[j]);
    top = std::max(top, own_logits[j]);
  }
  if (!finite) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    scores->means.Fill(nan, taus.size(), extras);
    scores->self_mass = nan;
    return true;
  }

  // Places in the order of falling logits, and so of falling weights.
  std::vector<int32_t>& order = scratch->order;
  order.resize(keys);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [own_logits](int32_t a, int32_t b) {
    return own_logits[a] != own_logits[b] ? own_logits[a] > own_logits[b] : a < b;
  });
  std::vector<double>& logits = scratch->logits;
  std::vector<double>& weights = scratch->weights;
  logits.assign(keys + kSwapPadding, 0);
  weights.assign(keys + kSwapPadding, 0);
  double total = std::exp(self_logit - top);
  scores->self_mass = total;
  for (int64_t place = 0; place < keys; ++place) {
    logits[place] = own_logits[order[place]];
    weights[place] = std::exp(logits[place] - top);
    total += weights[place];
  }
  for (int64_t place = 0; place < keys; ++place) weights[place] /= total;
  scores->self_mass /= total;
  if (!scores->has_swaps) return true;

  moved->SetOrder(order.data(), keys);
  double inverse_taus[kMaxTaus];
  for (int64_t t = 0; t < tau_count; ++t) inverse_taus[t] = std::min(1 / taus[t], kLargestInverse);
  const double smallest = *std::min_element(inverse_taus, inverse_taus + tau_count);
  const double largest_gap = weights[0] - weights[keys - 1];
  const int64_t block_size = std::min(kBlock, keys);
  T* const forward = scratch->forward.AtLeast(block_size * kStride);
  T* const backward = scratch->backward.AtLeast(block_size * kStride);
  SwapSums sums[kMaxTaus];
  std::optional<DetailedSwaps<T>> detailed;
  if (extras.any()) {
    detailed.emplace(taus, extras, keys, self_logit - top - std::log(total), largest_gap, scratch);
  }
  for (int64_t row = 0; row < keys; row += kBlock) {
    for (int64_t column = row; column < keys; column += kBlock) {
      if (cancel != nullptr && cancel->cancelled()) return false;
      // Rows whose widest gap counts, which come first, and columns whose widest gap does, which
      // come last: the rest has alpha 0 at every temperature.
      const auto counts = [&](int64_t i, int64_t j) {
        return (weights[i] - weights[j] - largest_gap) * smallest >= kLowestExponent;
      };
      int64_t rows = 0;
      const int64_t end = std::min(column + kBlock, keys);
      while (rows < kBlock && row + rows < keys && counts(row + rows, end - 1)) ++rows;
      if (rows == 0) continue;
      int64_t first_column = column;
      while (!counts(row, first_column)) ++first_column;
      const int64_t columns = end - first_column;

      moved->Compute(row, rows, first_column, columns, forward, kStride);
      if (row == first_column && rows == columns) {
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < columns; ++j) {
            backward[i * kStride + j] = forward[j * kStride + i];
          }
        }
      } else {
        moved->ComputeTransposed(first_column, columns, row, rows, backward, kStride);
      }
      const SwapBlock<T> block{.rows = rows,
                               .columns = columns,
                               .first_row = row,
                               .first_column = first_column,
                               .forward = forward,
                               .backward = backward,
                               .stride = kStride,
                               .row_logits = logits.data() + row,
                               .row_weights = weights.data() + row,
                               .column_logits = logits.data() + first_column,
                               .column_weights = weights.data() + first_column,
                               .largest_gap = largest_gap,
                               .taus = tau_count,
                               .inverse_taus = inverse_taus,
                               .smallest_inverse_tau = smallest};
      if (detailed.has_value()) {
        detailed->Add(block, top + std::log(total));
      } else {
        AddSwaps(block, sums);
      }
    }
  }
  if (detailed.has_value()) {
    scores->means = detailed->Means();
    return true;
  }
  scores->means.positional.resize(tau_count);
  scores->means.symbolic.resize(tau_count);
  for (int64_t t = 0; t < tau_count; ++t) {
    scores->means.positional[t] = sums[t].positional / sums[t].weight;
    scores->means.symbolic[t] = sums[t].symbolic / sums[t].weight;
  }
  return true;
}

template bool ComputeSwapScores<float>(const double*, int64_t, double, const std::vector<double>&,
                                       MovedLogits<float>*, const CancelFlag*, SwapScratch<float>*,
                                       HeadScores*, const SwapExtras&);
template bool ComputeSwapScores<double>(const double*, int64_t, double, const std::vector<double>&,
                                        MovedLogits<double>*, const CancelFlag*,
                                        SwapScratch<double>*, HeadScores*, const SwapExtras&);

}  // namespace hopscope::engine

#include "worker/engine/scorers/block_swaps.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hopscope::engine {
namespace {

// log sum exp of two runs of numbers, at least one in all.
double LogSum(const double* a, int64_t a_count, const double* b, int64_t b_count) {
  double top = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < a_count; ++i) top = std::max(top, a[i]);
  for (int64_t i = 0; i < b_count; ++i) top = std::max(top, b[i]);
  double sum = 0;
  for (int64_t i = 0; i < a_count; ++i) sum += std::exp(a[i] - top);
  for (int64_t i = 0; i < b_count; ++i) sum += std::exp(b[i] - top);
  return top + std::log(sum);
}

}  // namespace

KeyBlocks EqualBlocks(int64_t first, int64_t keys, int64_t count) {
  const int64_t size = (keys - first) / count;
  KeyBlocks blocks;
  if (size < 1) return blocks;
  for (int64_t begin = keys - count * size; begin < keys; begin += size) {
    blocks.emplace_back(begin, begin + size);
  }
  return blocks;
}

template <typename T>
bool ComputeBlockScores(const double* own_logits, int64_t keys, double self_logit,
                        const KeyBlocks& blocks, const std::vector<double>& taus,
                        const SwapExtras& extras, MovedLogits<T>* moved, const CancelFlag* cancel,
                        HeadScores* scores) {
  const int64_t count = static_cast<int64_t>(blocks.size());
  scores->has_swaps = count >= 2;
  scores->swapped = count;
  if (!std::isfinite(self_logit) || !std::all_of(own_logits, own_logits + keys, [](double logit) {
        return std::isfinite(logit);
      })) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    scores->means.Fill(nan, taus.size(), extras);
    scores->self_mass = nan;
    return true;
  }
  const double log_total = LogSum(own_logits, keys, &self_logit, 1);
  scores->self_mass = std::exp(self_logit - log_total);
  if (!scores->has_swaps) return true;

  std::vector<double> logs(count);     // of the mean of e^logit over a block
  std::vector<double> masses(count);   // attention on a block
  std::vector<double> weights(count);  // mean attention in it
  std::vector<double> sizes(count);
  int64_t largest_size = 0;
  for (int64_t b = 0; b < count; ++b) {
    const auto [begin, end] = blocks[b];
    largest_size = std::max(largest_size, end - begin);
    sizes[b] = static_cast<double>(end - begin);
    const double log_sum = LogSum(own_logits + begin, end - begin, nullptr, 0);
    logs[b] = log_sum - std::log(sizes[b]);
    masses[b] = std::exp(log_sum - log_total);
    weights[b] = masses[b] / sizes[b];
  }
  // Attention that no swap moves: the query's own and that of keys outside of all blocks.
  double outside = scores->self_mass;
  for (int64_t key = 0, b = 0; key < keys; ++key) {
    while (b < count && key >= blocks[b].second) ++b;
    if (b == count || key < blocks[b].first) outside += std::exp(own_logits[key] - log_total);
  }

  const auto [least, most] = std::minmax_element(weights.begin(), weights.end());
  const double uniform = 1 / static_cast<double>(keys + 1);
  SwapAccumulator sums(taus, extras, *most - *least, uniform, uniform * kCentredZero<T>);
  std::vector<double> moved_logits(largest_size);
  // Log of the mean of e^logit over block `to` when contents of block `from` stand in it.
  const auto after = [&](int64_t from, int64_t to) {
    const int64_t size = blocks[to].second - blocks[to].first;
    const int64_t common = std::min(size, blocks[from].second - blocks[from].first);
    moved->ComputeAlong(blocks[from].first, blocks[to].first, common, moved_logits.data());
    return LogSum(moved_logits.data(), common, own_logits + blocks[to].first + common,
                  size - common) -
           std::log(sizes[to]);
  };
  for (int64_t i = 0; i < count; ++i) {
    if (cancel != nullptr && cancel->cancelled()) return false;
    for (int64_t j = i + 1; j < count; ++j) {
      if (!sums.Counts(std::abs(weights[i] - weights[j]))) continue;
      Swap swap{.before_i = logs[i],
                .before_j = logs[j],
                .after_i = after(j, i),
                .after_j = after(i, j),
                .weight_i = weights[i],
                .weight_j = weights[j],
                .mass = masses[i] + masses[j]};
      if (extras.needs_moved()) {
        // What stays in place is added up anew: subtracting what moves would lose its digits.
        double rest = outside;
        for (int64_t b = 0; b < count; ++b) {
          if (b != i && b != j) rest += masses[b];
        }
        const MovedWeights after_swap = WeightsAfter(rest, swap.after_i - log_total, sizes[i],
                                                     swap.after_j - log_total, sizes[j]);
        swap.moved_i = after_swap.i;
        swap.moved_j = after_swap.j;
      }
      sums.Add(swap);
    }
  }
  scores->means = sums.Means();
  return true;
}

template bool ComputeBlockScores<float>(const double*, int64_t, double, const KeyBlocks&,
                                        const std::vector<double>&, const SwapExtras&,
                                        MovedLogits<float>*, const CancelFlag*, HeadScores*);
template bool ComputeBlockScores<double>(const double*, int64_t, double, const KeyBlocks&,
                                         const std::vector<double>&, const SwapExtras&,
                                         MovedLogits<double>*, const CancelFlag*, HeadScores*);

}  // namespace hopscope::engine

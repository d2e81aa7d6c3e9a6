#include "tests/golden/naive_replacement.h"

#include <algorithm>
#include <cmath>

namespace hopscope::golden {
namespace {

using checkpoint::PositionKind;
using engine::ReplacementKind;

std::vector<double> Turn(const checkpoint::Architecture& a, std::vector<double> x,
                         int64_t distance) {
  const bool interleaved = a.position == PositionKind::kRotaryInterleaved;
  if (!interleaved && a.position != PositionKind::kRotaryHalfSplit) return x;
  for (int64_t plane = 0; plane < a.rotary_dim / 2; ++plane) {
    const double angle = static_cast<double>(distance) * a.rotary_angles[plane];
    double& first = x[interleaved ? 2 * plane : plane];
    double& second = x[interleaved ? 2 * plane + 1 : plane + a.rotary_dim / 2];
    const double turned = first * std::cos(angle) - second * std::sin(angle);
    second = first * std::sin(angle) + second * std::cos(angle);
    first = turned;
  }
  return x;
}

}  // namespace

std::vector<double> NaiveWeights(const checkpoint::Architecture& a, ReplacementKind kind,
                                 int64_t layer, int64_t head,
                                 const std::vector<std::vector<double>>& keys,
                                 const std::vector<double>& own, int64_t query) {
  // The logit of `content` standing in slot `slot`.
  const auto logit = [&](int64_t content, int64_t slot) {
    const std::vector<double> turned = Turn(a, own, query - slot);
    double product = 0;
    for (size_t c = 0; c < turned.size(); ++c) product += turned[c] * keys[content][c];
    const double slope = a.position == PositionKind::kAlibi ? a.alibi_slopes[head] : 0;
    return a.attention_scale[layer] * product + slope * static_cast<double>(slot - query);
  };
  const int64_t window = a.attention_window[layer];
  const int64_t first = window > 0 ? std::max<int64_t>(0, query - window + 1) : 0;
  std::vector<double> weights(query + 1, 0);
  double total = 0;
  for (int64_t j = first; j <= query; ++j) {
    double mean = 0;
    for (int64_t other = first; other < query; ++other) {
      mean += kind == ReplacementKind::kPositionalOnly ? logit(other, j) : logit(j, other);
    }
    mean /= static_cast<double>(query - first);
    total += weights[j] = std::exp(j == query ? logit(query, query) : mean);
  }
  for (double& weight : weights) weight /= total;
  return weights;
}

}  // namespace hopscope::golden

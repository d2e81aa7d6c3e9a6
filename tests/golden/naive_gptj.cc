#include "tests/golden/naive_gptj.h"

#include <algorithm>
#include <cmath>

#include "tests/golden/naive_replacement.h"
#include "worker/engine/model/read_weight.h"

namespace hopscope::golden {
namespace {

using checkpoint::Checkpoint;
using checkpoint::WeightRole;

// matrix x, the matrix having one row an output.
std::vector<double> Times(const std::vector<double>& matrix, const std::vector<double>& x) {
  std::vector<double> y(matrix.size() / x.size(), 0);
  for (size_t r = 0; r < y.size(); ++r) {
    for (size_t c = 0; c < x.size(); ++c) y[r] += matrix[r * x.size() + c] * x[c];
  }
  return y;
}

}  // namespace

NaiveGptJ::NaiveGptJ(const std::string& path) : checkpoint_(*Checkpoint::Open(path)) {
  for (int64_t layer = 0; layer < architecture().layers; ++layer) {
    layers_.push_back({.gain = Weight(WeightRole::kNorm1Gain, layer),
                       .bias = Weight(WeightRole::kNorm1Bias, layer),
                       .query = Weight(WeightRole::kQuery, layer),
                       .key = Weight(WeightRole::kKey, layer),
                       .value = Weight(WeightRole::kValue, layer),
                       .out = Weight(WeightRole::kAttentionOut, layer),
                       .up = Weight(WeightRole::kMlpUp, layer),
                       .up_bias = Weight(WeightRole::kMlpUpBias, layer),
                       .down = Weight(WeightRole::kMlpDown, layer),
                       .down_bias = Weight(WeightRole::kMlpDownBias, layer)});
  }
}

std::vector<double> NaiveGptJ::Weight(WeightRole role, int64_t layer) const {
  const auto& slice = checkpoint_.Weight(role, layer);
  std::vector<double> values(slice.rows * slice.columns);
  engine::ReadWeight(slice, values.data(), slice.columns);
  return values;
}

NaiveGptJ::Matrix NaiveGptJ::Embed(const std::vector<int32_t>& ids) const {
  const std::vector<double> table = Weight(WeightRole::kTokenEmbedding, -1);
  const int64_t width = architecture().d_model;
  Matrix rows;
  for (const int32_t id : ids) {
    rows.emplace_back(table.begin() + id * width, table.begin() + (id + 1) * width);
  }
  return rows;
}

std::vector<double> NaiveGptJ::Norm(const std::vector<double>& x, const std::vector<double>& gain,
                                    const std::vector<double>& bias) const {
  double mean = 0;
  double variance = 0;
  const double size = static_cast<double>(x.size());
  for (const double value : x) mean += value / size;
  for (const double value : x) variance += (value - mean) * (value - mean) / size;
  std::vector<double> y;
  for (size_t c = 0; c < x.size(); ++c) {
    y.push_back((x[c] - mean) / std::sqrt(variance + architecture().norm_epsilon) * gain[c] +
                bias[c]);
  }
  return y;
}

std::vector<double> NaiveGptJ::Turn(std::vector<double> x, int64_t position) const {
  const auto& a = architecture();
  for (int64_t head = 0; head < a.heads; ++head) {
    for (int64_t plane = 0; plane < a.rotary_dim / 2; ++plane) {
      const double angle =
          static_cast<double>(position) *
          std::pow(10000.0, -2.0 * static_cast<double>(plane) / static_cast<double>(a.rotary_dim));
      double& first = x[head * a.d_head + 2 * plane];
      double& second = x[head * a.d_head + 2 * plane + 1];
      const double turned = first * std::cos(angle) - second * std::sin(angle);
      second = first * std::sin(angle) + second * std::cos(angle);
      first = turned;
    }
  }
  return x;
}

std::vector<double> NaiveGptJ::Attend(int64_t head, const std::vector<double>& query,
                                      const Matrix& keys, int64_t i) const {
  const int64_t d_head = architecture().d_head;
  std::vector<double> weights(i + 1, 0);
  double top = -INFINITY;
  double total = 0;
  for (int64_t j = 0; j <= i; ++j) {
    for (int64_t c = head * d_head; c < (head + 1) * d_head; ++c) {
      weights[j] += query[c] * keys[j][c];
    }
    weights[j] /= std::sqrt(static_cast<double>(d_head));
    top = std::max(top, weights[j]);
  }
  for (double& weight : weights) total += weight = std::exp(weight - top);
  for (double& weight : weights) weight /= total;
  return weights;
}

NaiveGptJ::Matrix NaiveGptJ::LastAttention(int64_t layer, const Matrix& rows) const {
  const LayerWeights& weights = layers_[layer];
  const int64_t last = static_cast<int64_t>(rows.size()) - 1;
  Matrix keys;
  for (int64_t i = 0; i <= last; ++i) {
    keys.push_back(Turn(Times(weights.key, Norm(rows[i], weights.gain, weights.bias)), i));
  }
  const auto query = Turn(Times(weights.query, Norm(rows[last], weights.gain, weights.bias)), last);
  Matrix attention;
  for (int64_t head = 0; head < architecture().heads; ++head) {
    attention.push_back(Attend(head, query, keys, last));
  }
  return attention;
}

NaiveGptJ::Matrix NaiveGptJ::Layer(int64_t layer, const Matrix& rows,
                                   const engine::HeadReplacements* replacements) const {
  const LayerWeights& weights = layers_[layer];
  const int64_t d_head = architecture().d_head;
  const int64_t tokens = static_cast<int64_t>(rows.size());
  Matrix normed, plain_queries, plain_keys, queries, keys, values;
  for (int64_t i = 0; i < tokens; ++i) {
    normed.push_back(Norm(rows[i], weights.gain, weights.bias));
    plain_queries.push_back(Times(weights.query, normed[i]));
    plain_keys.push_back(Times(weights.key, normed[i]));
    queries.push_back(Turn(plain_queries[i], i));
    keys.push_back(Turn(plain_keys[i], i));
    values.push_back(Times(weights.value, normed[i]));
  }
  Matrix out = rows;
  for (int64_t i = 0; i < tokens; ++i) {
    std::vector<double> attended(queries[i].size(), 0);
    for (int64_t head = 0; head < architecture().heads; ++head) {
      std::vector<double> attention = Attend(head, queries[i], keys, i);
      const engine::HeadReplacement* const replacement =
          replacements == nullptr ? nullptr : replacements->Find(layer, head);
      if (replacement != nullptr && replacement->kind == engine::ReplacementKind::kZero) continue;
      if (replacement != nullptr) {
        const int64_t first = head * architecture().d_head;
        const auto own = [&](const std::vector<double>& row) {
          return std::vector<double>(row.begin() + first,
                                     row.begin() + first + architecture().d_head);
        };
        Matrix own_keys;
        for (const auto& row : plain_keys) own_keys.push_back(own(row));
        attention = NaiveWeights(architecture(), replacement->kind, layer, head, own_keys,
                                 own(plain_queries[i]), i);
      }
      for (int64_t j = 0; j <= i; ++j) {
        for (int64_t c = head * d_head; c < (head + 1) * d_head; ++c) {
          attended[c] += attention[j] * values[j][c];
        }
      }
    }
    const auto attention = Times(weights.out, attended);
    auto inner = Times(weights.up, normed[i]);
    for (size_t c = 0; c < inner.size(); ++c) {
      const double z = inner[c] + weights.up_bias[c];
      inner[c] = z / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (z + 0.044715 * z * z * z)));
    }
    const auto mlp = Times(weights.down, inner);
    for (size_t c = 0; c < mlp.size(); ++c) {
      out[i][c] += attention[c] + mlp[c] + weights.down_bias[c];
    }
  }
  return out;
}

std::vector<double> NaiveGptJ::Logits(const std::vector<int32_t>& ids,
                                      const engine::HeadReplacements* replacements) const {
  Matrix rows = Embed(ids);
  for (int64_t layer = 0; layer < architecture().layers; ++layer) {
    rows = Layer(layer, rows, replacements);
  }
  auto logits =
      Times(Weight(WeightRole::kHead, -1), Norm(rows.back(), Weight(WeightRole::kFinalNormGain, -1),
                                                Weight(WeightRole::kFinalNormBias, -1)));
  const auto bias = Weight(WeightRole::kHeadBias, -1);
  for (size_t c = 0; c < logits.size(); ++c) logits[c] += bias[c];
  return logits;
}

}  // namespace hopscope::golden

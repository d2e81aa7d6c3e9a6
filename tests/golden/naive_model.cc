#include "tests/golden/naive_model.h"

#include <algorithm>
#include <cmath>

#include "tests/golden/naive_replacement.h"
#include "worker/engine/model/read_weight.h"

namespace hopscope::golden {
namespace {

using checkpoint::Activation;
using checkpoint::BlockForm;
using checkpoint::Checkpoint;
using checkpoint::NormKind;
using checkpoint::PositionKind;
using checkpoint::WeightRole;
using Row = NaiveModel::Row;

// matrix x + bias, the matrix having one row an output; an empty bias is zero.
Row Times(const Row& matrix, const Row& x, const Row& bias = {}) {
  Row y(matrix.size() / x.size(), 0);
  for (size_t r = 0; r < y.size(); ++r) {
    for (size_t c = 0; c < x.size(); ++c) y[r] += matrix[r * x.size() + c] * x[c];
    if (!bias.empty()) y[r] += bias[r];
  }
  return y;
}

void Add(const Row& x, Row* sum) {
  for (size_t c = 0; c < x.size(); ++c) (*sum)[c] += x[c];
}

}  // namespace

NaiveModel::NaiveModel(const std::string& path) : checkpoint_(*Checkpoint::Open(path)) {
  const auto norm = [&](WeightRole gain, WeightRole bias, int64_t layer) {
    NormWeights weights{.gain = Weight(gain, layer), .bias = Weight(bias, layer)};
    for (double& value : weights.gain) value += architecture().norm_gain_offset;
    return weights;
  };
  token_embedding_ = Weight(WeightRole::kTokenEmbedding, -1);
  position_embedding_ = Weight(WeightRole::kPositionEmbedding, -1);
  embedding_norm_ = norm(WeightRole::kEmbeddingNormGain, WeightRole::kEmbeddingNormBias, -1);
  final_norm_ = norm(WeightRole::kFinalNormGain, WeightRole::kFinalNormBias, -1);
  head_ = Weight(WeightRole::kHead, -1);
  head_bias_ = Weight(WeightRole::kHeadBias, -1);
  for (int64_t layer = 0; layer < architecture().layers; ++layer) {
    const auto weight = [&](WeightRole role) { return Weight(role, layer); };
    NormWeights norm1_post{.gain = weight(WeightRole::kNorm1PostGain)};
    NormWeights norm2_post{.gain = weight(WeightRole::kNorm2PostGain)};
    for (double& value : norm1_post.gain) value += architecture().norm_gain_offset;
    for (double& value : norm2_post.gain) value += architecture().norm_gain_offset;
    layers_.push_back({.norm1 = norm(WeightRole::kNorm1Gain, WeightRole::kNorm1Bias, layer),
                       .norm1_post = norm1_post,
                       .norm2 = norm(WeightRole::kNorm2Gain, WeightRole::kNorm2Bias, layer),
                       .norm2_post = norm2_post,
                       .query = weight(WeightRole::kQuery),
                       .query_bias = weight(WeightRole::kQueryBias),
                       .key = weight(WeightRole::kKey),
                       .key_bias = weight(WeightRole::kKeyBias),
                       .value = weight(WeightRole::kValue),
                       .value_bias = weight(WeightRole::kValueBias),
                       .out = weight(WeightRole::kAttentionOut),
                       .out_bias = weight(WeightRole::kAttentionOutBias),
                       .gate = weight(WeightRole::kMlpGate),
                       .up = weight(WeightRole::kMlpUp),
                       .up_bias = weight(WeightRole::kMlpUpBias),
                       .down = weight(WeightRole::kMlpDown),
                       .down_bias = weight(WeightRole::kMlpDownBias)});
  }
}

Row NaiveModel::Weight(WeightRole role, int64_t layer) const {
  if (!checkpoint_.Has(role, layer)) return {};
  const auto& slice = checkpoint_.Weight(role, layer);
  Row values(slice.rows * slice.columns);
  engine::ReadWeight(slice, values.data(), slice.columns);
  return values;
}

NaiveModel::Matrix NaiveModel::Embed(const std::vector<int32_t>& ids) const {
  const auto& a = architecture();
  Matrix rows;
  for (size_t i = 0; i < ids.size(); ++i) {
    Row row(a.d_model);
    for (int64_t c = 0; c < a.d_model; ++c) {
      row[c] = token_embedding_[ids[i] * a.d_model + c] * a.embedding_scale;
      if (a.position == PositionKind::kLearned) {
        const int64_t position = static_cast<int64_t>(i) + a.learned_offset;
        row[c] += position_embedding_[position * a.d_model + c];
      }
    }
    rows.push_back(a.embedding_norm ? Norm(row, embedding_norm_) : row);
  }
  return rows;
}

Row NaiveModel::Norm(Row x, const NormWeights& weights) const {
  const auto& a = architecture();
  if (a.norm == NormKind::kNone) return x;
  double mean = 0;
  double variance = 0;
  const double size = static_cast<double>(x.size());
  if (a.norm == NormKind::kLayerNorm) {
    for (const double value : x) mean += value / size;
  }
  for (const double value : x) variance += (value - mean) * (value - mean) / size;
  for (size_t c = 0; c < x.size(); ++c) {
    x[c] = (x[c] - mean) / std::sqrt(variance + a.norm_epsilon) * weights.gain[c];
    if (!weights.bias.empty()) x[c] += weights.bias[c];
  }
  return x;
}

Row NaiveModel::Turn(Row x, int64_t heads, int64_t position) const {
  const auto& a = architecture();
  const bool interleaved = a.position == PositionKind::kRotaryInterleaved;
  if (!interleaved && a.position != PositionKind::kRotaryHalfSplit) return x;
  const int64_t planes = a.rotary_dim / 2;
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t plane = 0; plane < planes; ++plane) {
      const double angle = static_cast<double>(position) * a.rotary_angles[plane];
      double& first = x[head * a.d_head + (interleaved ? 2 * plane : plane)];
      double& second = x[head * a.d_head + (interleaved ? 2 * plane + 1 : plane + planes)];
      const double turned = first * std::cos(angle) - second * std::sin(angle);
      second = first * std::sin(angle) + second * std::cos(angle);
      first = turned;
    }
  }
  return x;
}

Row NaiveModel::Attend(int64_t layer, int64_t head, const Row& query, const Matrix& keys,
                       int64_t i) const {
  const auto& a = architecture();
  const int64_t key_head = head / (a.heads / a.kv_heads);
  const int64_t window = a.attention_window[layer];
  Row weights(i + 1, 0);
  double top = -INFINITY;
  double total = 0;
  for (int64_t j = 0; j <= i; ++j) {
    double logit = 0;
    for (int64_t c = 0; c < a.d_head; ++c) {
      logit += query[head * a.d_head + c] * keys[j][key_head * a.d_head + c];
    }
    logit *= a.attention_scale[layer];
    if (a.attention_softcap > 0) {
      logit = a.attention_softcap * std::tanh(logit / a.attention_softcap);
    }
    if (a.position == PositionKind::kAlibi) {
      logit += a.alibi_slopes[head] * static_cast<double>(j - i);
    }
    weights[j] = window > 0 && j <= i - window ? -INFINITY : logit;
    top = std::max(top, weights[j]);
  }
  for (double& weight : weights) total += weight = std::exp(weight - top);
  for (double& weight : weights) weight /= total;
  return weights;
}

double NaiveModel::Activate(double x) const {
  switch (architecture().activation) {
    case Activation::kGeluTanh:
      return x / 2 * (1 + std::tanh(architecture().gelu_tanh_factor * (x + 0.044715 * x * x * x)));
    case Activation::kGeluErf:
      return x / 2 * (1 + std::erf(x / std::sqrt(2)));
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kSilu:
      break;
  }
  return x / (1 + std::exp(-x));
}

Row NaiveModel::Mlp(const LayerWeights& weights, const Row& x) const {
  Row inner = Times(weights.up, x, weights.up_bias);
  if (architecture().gated_mlp) {
    const Row gate = Times(weights.gate, x);
    for (size_t c = 0; c < inner.size(); ++c) inner[c] *= Activate(gate[c]);
  } else {
    for (double& value : inner) value = Activate(value);
  }
  return Times(weights.down, inner, weights.down_bias);
}

NaiveModel::Matrix NaiveModel::LastAttention(int64_t layer, const Matrix& rows) const {
  const auto& a = architecture();
  const LayerWeights& weights = layers_[layer];
  const int64_t last = static_cast<int64_t>(rows.size()) - 1;
  Matrix keys;
  for (int64_t i = 0; i <= last; ++i) {
    const Row normed = Norm(rows[i], weights.norm1);
    keys.push_back(Turn(Times(weights.key, normed, weights.key_bias), a.kv_heads, i));
  }
  const Row query = Turn(Times(weights.query, Norm(rows[last], weights.norm1), weights.query_bias),
                         a.heads, last);
  Matrix attention;
  for (int64_t head = 0; head < a.heads; ++head) {
    attention.push_back(Attend(layer, head, query, keys, last));
  }
  return attention;
}

NaiveModel::Matrix NaiveModel::Layer(int64_t layer, const Matrix& rows,
                                     const engine::HeadReplacements* replacements) const {
  const auto& a = architecture();
  const LayerWeights& weights = layers_[layer];
  Matrix plain_keys, keys, values, out;
  for (int64_t i = 0; i < static_cast<int64_t>(rows.size()); ++i) {
    const Row normed = Norm(rows[i], weights.norm1);
    plain_keys.push_back(Times(weights.key, normed, weights.key_bias));
    keys.push_back(Turn(plain_keys[i], a.kv_heads, i));
    values.push_back(Times(weights.value, normed, weights.value_bias));
    const Row plain_query = Times(weights.query, normed, weights.query_bias);
    const Row query = Turn(plain_query, a.heads, i);
    Row attended(a.heads * a.d_head, 0);
    for (int64_t head = 0; head < a.heads; ++head) {
      Row attention = Attend(layer, head, query, keys, i);
      const int64_t value_head = head / (a.heads / a.kv_heads);
      const engine::HeadReplacement* const replacement =
          replacements == nullptr ? nullptr : replacements->Find(layer, head);
      if (replacement != nullptr && replacement->kind == engine::ReplacementKind::kZero) continue;
      if (replacement != nullptr) {
        const auto own = [&a](const Row& row, int64_t own_head) {
          return Row(row.begin() + own_head * a.d_head, row.begin() + (own_head + 1) * a.d_head);
        };
        Matrix own_keys;
        for (const Row& row : plain_keys) own_keys.push_back(own(row, value_head));
        attention =
            NaiveWeights(a, replacement->kind, layer, head, own_keys, own(plain_query, head), i);
      }
      for (int64_t j = 0; j <= i; ++j) {
        for (int64_t c = 0; c < a.d_head; ++c) {
          attended[head * a.d_head + c] += attention[j] * values[j][value_head * a.d_head + c];
        }
      }
    }
    Row branch = Times(weights.out, attended, weights.out_bias);
    const bool sandwich = a.block == BlockForm::kSandwich;
    if (sandwich) branch = Norm(branch, weights.norm1_post);
    Row x = a.residual ? rows[i] : Row(a.d_model, 0);
    Add(branch, &x);
    if (a.d_mlp > 0) {
      const Row mlp_in = a.block == BlockForm::kParallelSharedNorm ? normed
                         : a.block == BlockForm::kParallelTwoNorms ? Norm(rows[i], weights.norm2)
                                                                   : Norm(x, weights.norm2);
      Row mlp = Mlp(weights, mlp_in);
      if (sandwich) mlp = Norm(mlp, weights.norm2_post);
      if (!a.residual) x.assign(a.d_model, 0);
      Add(mlp, &x);
    }
    out.push_back(std::move(x));
  }
  return out;
}

Row NaiveModel::Head(const Row& row) const {
  const double cap = architecture().logit_softcap;
  Row logits = Times(head_, Norm(row, final_norm_), head_bias_);
  for (double& logit : logits) {
    if (cap > 0) logit = cap * std::tanh(logit / cap);
  }
  return logits;
}

Row NaiveModel::Logits(const std::vector<int32_t>& ids,
                       const engine::HeadReplacements* replacements) const {
  Matrix rows = Embed(ids);
  for (int64_t layer = 0; layer < architecture().layers; ++layer) {
    rows = Layer(layer, rows, replacements);
  }
  return Head(rows.back());
}

}  // namespace hopscope::golden

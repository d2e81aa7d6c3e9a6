#include <ATen/ops/arange.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "worker/engine/model/general_head_replacement.h"
#include "worker/engine/model/layer_ops.h"

namespace hopscope::engine {
namespace {

using checkpoint::Activation;
using checkpoint::Architecture;

// 16-bit formats hold what is stored; what is computed from it is float32 until it is stored again.
at::Tensor Wide(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  return type == at::kBFloat16 || type == at::kHalf ? tensor.to(at::kFloat) : tensor;
}

class GeneralOps : public LayerOps {
 public:
  void Embed(const Model& model, int64_t sequences, int64_t tokens, const int32_t* ids,
             const at::Tensor& out) override {
    const Architecture& a = model.architecture();
    const ModelWeights& weights = model.weights();
    const at::Tensor index =
        at::from_blob(const_cast<int32_t*>(ids), {sequences * tokens}, at::kInt).to(out.device());
    const at::Tensor rows = Wide(at::index_select(weights.token_embedding, 0, index));
    if (a.embedding_scale != 1) rows.mul_(a.embedding_scale);
    if (weights.position_embedding.defined()) {
      rows.view({sequences, tokens, a.d_model})
          .add_(weights.position_embedding.narrow(0, a.learned_offset, tokens));
    }
    out.copy_(rows);
    if (weights.embedding_norm.gain.defined()) Norm(model, weights.embedding_norm, out, out);
  }

  void Norm(const Model& model, const NormWeights& weights, const at::Tensor& in,
            const at::Tensor& out) override {
    const Architecture& a = model.architecture();
    if (a.norm == checkpoint::NormKind::kNone) {
      out.copy_(in);
      return;
    }
    const at::Tensor rows = Wide(in);
    if (a.norm == checkpoint::NormKind::kRmsNorm) {
      const at::Tensor factor = at::rsqrt(
          rows.square().mean(at::OptionalIntArrayRef({-1}), /*keepdim=*/true).add(a.norm_epsilon));
      const at::Tensor normed = rows.mul(factor).mul_(weights.gain);
      if (weights.bias.defined()) normed.add_(weights.bias);
      out.copy_(normed);
      return;
    }
    out.copy_(at::layer_norm(rows, {a.d_model}, weights.gain, weights.bias, a.norm_epsilon));
  }

  void AddBias(const at::Tensor& bias, const at::Tensor& rows) override { rows.add_(bias); }

  void AddRows(const at::Tensor& other, const at::Tensor& rows) override { rows.add_(other); }

  void Activate(const Model& model, const at::Tensor& gate, const at::Tensor& up,
                const at::Tensor& up_bias, const at::Tensor& out) override {
    const at::Tensor biased = up_bias.defined() ? Wide(up).add(up_bias) : Wide(up);
    if (gate.defined()) {
      out.copy_(Activated(model, Wide(gate)).mul_(biased));
    } else {
      out.copy_(Activated(model, biased));
    }
  }

  bool Attention(const AttentionInputs& inputs) override {
    const Architecture& a = inputs.model->architecture();
    const int64_t sequences = inputs.sequences;
    const int64_t tokens = inputs.tokens;
    const int64_t group = a.heads / a.kv_heads;
    const int64_t window = a.attention_window[inputs.layer];
    // [sequences, heads, tokens, d_head]
    const auto split = [&](const at::Tensor& rows, int64_t heads) {
      return rows.unflatten(0, {sequences, tokens}).unflatten(2, {heads, a.d_head}).transpose(1, 2);
    };
    const at::Tensor all_keys = split(Wide(inputs.keys), a.kv_heads);
    at::Tensor keys = Turn(*inputs.model, all_keys, 0);
    at::Tensor values = split(Wide(inputs.values), a.kv_heads);
    if (group > 1) {
      keys = keys.repeat_interleave(group, 1);
      values = values.repeat_interleave(group, 1);
    }
    const at::Tensor all_queries = split(Wide(inputs.queries), a.heads);
    const at::Tensor out = split(inputs.out, a.heads);
    for (int64_t query = inputs.first_query; query < tokens; query += kQueriesPerTile) {
      if (inputs.cancel != nullptr && inputs.cancel->cancelled()) return false;
      const int64_t count = std::min(kQueriesPerTile, tokens - query);
      const int64_t first_key = window > 0 ? std::max<int64_t>(0, query - window + 1) : 0;
      const int64_t columns = query + count - first_key;
      const at::Tensor queries = Turn(*inputs.model, all_queries.narrow(2, query, count), query)
                                     .mul(a.attention_scale[inputs.layer]);
      at::Tensor logits = at::matmul(queries, keys.narrow(2, first_key, columns).transpose(-1, -2));
      if (a.attention_softcap > 0) {
        logits.div_(a.attention_softcap).tanh_().mul_(a.attention_softcap);
      }
      // distance[r][c] = key - query
      const at::TensorOptions integers = logits.options().dtype(at::kLong);
      const at::Tensor distance = at::arange(first_key, first_key + columns, integers)
                                      .unsqueeze(0)
                                      .sub(at::arange(query, query + count, integers).unsqueeze(1));
      if (a.position == checkpoint::PositionKind::kAlibi) {
        const at::Tensor slopes =
            at::from_blob(const_cast<double*>(a.alibi_slopes.data()), {a.heads, 1, 1}, at::kDouble)
                .to(logits.options());
        logits.add_(slopes.mul(distance.to(logits.scalar_type())));
      }
      ReplaceLogits(inputs,
                    {.queries = all_queries.narrow(2, query, count),
                     .keys = all_keys,
                     .first_query = query,
                     .first_key = first_key},
                    logits);
      at::Tensor hidden = distance.gt(0);
      if (window > 0) hidden = hidden.logical_or(distance.le(-window));
      logits.masked_fill_(hidden, -std::numeric_limits<double>::infinity());
      const at::Tensor weights = at::softmax(logits, -1);
      Show(inputs, weights, query, first_key);
      out.narrow(2, query, count).copy_(at::matmul(weights, values.narrow(2, first_key, columns)));
      ReplaceOutputs(inputs, query, count, out);
    }
    return true;
  }

  void Softcap(double cap, const at::Tensor& rows) override { rows.div_(cap).tanh_().mul_(cap); }

  MatrixView View(const at::Tensor& rows) override {
    host_ = Wide(rows).to(at::kCPU).contiguous();
    return {.float64 = host_.scalar_type() == at::kDouble,
            .data = host_.const_data_ptr(),
            .rows = host_.size(0),
            .columns = host_.size(1),
            .stride = host_.stride(0)};
  }

 private:
  static at::Tensor Activated(const Model& model, const at::Tensor& x) {
    switch (model.architecture().activation) {
      case Activation::kGeluTanh: {
        const at::Tensor inner = x.mul(x).mul_(x).mul_(0.044715).add_(x);
        return inner.mul_(model.architecture().gelu_tanh_factor).tanh_().add_(1).mul_(x).mul_(0.5);
      }
      case Activation::kGeluErf:
        return at::erf(x.mul(M_SQRT1_2)).add_(1).mul_(x).mul_(0.5);
      case Activation::kRelu:
        return at::relu(x);
      case Activation::kSilu:
        break;
    }
    return at::sigmoid(x).mul_(x);
  }

  // Rotates x [sequences, heads, n, d_head], whose first token stands at `position`.
  static at::Tensor Turn(const Model& model, const at::Tensor& x, int64_t position) {
    const Architecture& a = model.architecture();
    if (!IsRotary(a.position)) return x;
    const int64_t count = x.size(2);
    const auto table = [&](auto zero) {
      using T = decltype(zero);
      const auto tables = model.rotary_tables<T>().AtLeast(position + count);
      const auto copy = [&](const T* from) {
        return at::from_blob(const_cast<T*>(from), {count, a.rotary_dim}, x.scalar_type())
            .to(x.device(), /*non_blocking=*/false, /*copy=*/true);
      };
      return std::make_pair(copy(tables->cosines(position)), copy(tables->sines(position)));
    };
    const auto [cosines, sines] = model.float64() ? table(double{}) : table(float{});
    const at::Tensor turning = x.narrow(3, 0, a.rotary_dim);
    // The other column of each pair, in the first one's place.
    const at::Tensor partner =
        a.position == checkpoint::PositionKind::kRotaryInterleaved
            ? turning.unflatten(3, {a.rotary_dim / 2, 2}).flip({4}).flatten(3)
            : turning.unflatten(3, {2, a.rotary_dim / 2}).flip({3}).flatten(3);
    at::Tensor turned = x.clone();
    turned.narrow(3, 0, a.rotary_dim).copy_(turning.mul(cosines).add_(partner.mul(sines)));
    return turned;
  }

  static void Show(const AttentionInputs& inputs, const at::Tensor& weights, int64_t query,
                   int64_t first_key) {
    if (inputs.observer == nullptr) return;
    const at::Tensor host = weights.to(at::kCPU).contiguous();
    for (int64_t sequence = 0; sequence < host.size(0); ++sequence) {
      for (int64_t head = 0; head < host.size(1); ++head) {
        const at::Tensor one = host[sequence][head];  // float64 or float32
        inputs.observer->OnAttention({.layer = inputs.layer,
                                      .head = head,
                                      .sequence = sequence,
                                      .first_query = query,
                                      .first_key = first_key,
                                      .weights = {.float64 = one.scalar_type() == at::kDouble,
                                                  .data = one.const_data_ptr(),
                                                  .rows = one.size(0),
                                                  .columns = one.size(1),
                                                  .stride = one.stride(0)}});
      }
    }
  }

  at::Tensor host_;
};

}  // namespace

std::unique_ptr<LayerOps> MakeGeneralOps() { return std::make_unique<GeneralOps>(); }

}  // namespace hopscope::engine

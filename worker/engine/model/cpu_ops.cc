#include <algorithm>

#include "worker/engine/model/cpu_attention.h"
#include "worker/engine/model/cpu_kernels.h"
#include "worker/engine/model/layer_ops.h"

namespace hopscope::engine {
namespace {

using checkpoint::Activation;
using checkpoint::Architecture;

template <typename T>
const T* Data(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<T>() : nullptr;
}

ActivationKind KindOf(Activation activation) {
  switch (activation) {
    case Activation::kGeluTanh:
      return ActivationKind::kGeluTanh;
    case Activation::kGeluErf:
      return ActivationKind::kGeluErf;
    case Activation::kRelu:
      return ActivationKind::kRelu;
    case Activation::kSilu:
      break;
  }
  return ActivationKind::kSilu;
}

// Calls body(T{}) with the element type of a tensor.
template <typename Body>
auto WithType(const at::Tensor& tensor, Body body) {
  return tensor.scalar_type() == at::kDouble ? body(double{}) : body(float{});
}

class CpuOps : public LayerOps {
 public:
  void Embed(const Model& model, int64_t sequences, int64_t tokens, const int32_t* ids,
             const at::Tensor& out) override {
    WithType(out, [&](auto zero) {
      using T = decltype(zero);
      const Architecture& a = model.architecture();
      const ModelWeights& weights = model.weights();
      const T* const table = Data<T>(weights.token_embedding);
      const T* const positions = Data<T>(weights.position_embedding);
      const T scale = static_cast<T>(a.embedding_scale);
      T* const rows = out.mutable_data_ptr<T>();
      for (int64_t row = 0; row < sequences * tokens; ++row) {
        const T* const from = table + ids[row] * a.d_model;
        T* const to = rows + row * out.stride(0);
        for (int64_t c = 0; c < a.d_model; ++c) to[c] = from[c] * scale;
        if (positions == nullptr) continue;
        const T* const position = positions + (row % tokens + a.learned_offset) * a.d_model;
        for (int64_t c = 0; c < a.d_model; ++c) to[c] += position[c];
      }
      if (weights.embedding_norm.gain.defined()) Norm(model, weights.embedding_norm, out, out);
      return 0;
    });
  }

  void Norm(const Model& model, const NormWeights& weights, const at::Tensor& in,
            const at::Tensor& out) override {
    if (model.architecture().norm == checkpoint::NormKind::kNone) {
      out.copy_(in);
      return;
    }
    WithType(out, [&](auto zero) {
      using T = decltype(zero);
      const Architecture& a = model.architecture();
      GetCpuKernels<T>().norm({.rows = in.size(0),
                               .columns = in.size(1),
                               .in = Data<T>(in),
                               .in_stride = in.stride(0),
                               .gain = Data<T>(weights.gain),
                               .bias = Data<T>(weights.bias),
                               .epsilon = a.norm_epsilon,
                               .rms = a.norm == checkpoint::NormKind::kRmsNorm,
                               .out = out.mutable_data_ptr<T>(),
                               .out_stride = out.stride(0)});
      return 0;
    });
  }

  void AddBias(const at::Tensor& bias, const at::Tensor& rows) override {
    WithType(rows, [&](auto zero) {
      using T = decltype(zero);
      GetCpuKernels<T>().add_bias(rows.size(0), rows.size(1), Data<T>(bias),
                                  rows.mutable_data_ptr<T>(), rows.stride(0));
      return 0;
    });
  }

  void AddRows(const at::Tensor& other, const at::Tensor& rows) override {
    WithType(rows, [&](auto zero) {
      using T = decltype(zero);
      for (int64_t row = 0; row < rows.size(0); ++row) {
        GetCpuKernels<T>().add_bias(1, rows.size(1), Data<T>(other) + row * other.stride(0),
                                    rows.mutable_data_ptr<T>() + row * rows.stride(0), 0);
      }
      return 0;
    });
  }

  void Activate(const Model& model, const at::Tensor& gate, const at::Tensor& up,
                const at::Tensor& up_bias, const at::Tensor& out) override {
    WithType(out, [&](auto zero) {
      using T = decltype(zero);
      const bool gated = gate.defined();
      const at::Tensor& in = gated ? gate : up;
      GetCpuKernels<T>().activate({.kind = KindOf(model.architecture().activation),
                                   .gelu_tanh_factor = model.architecture().gelu_tanh_factor,
                                   .rows = in.size(0),
                                   .columns = in.size(1),
                                   .in = Data<T>(in),
                                   .in_stride = in.stride(0),
                                   .bias = gated ? nullptr : Data<T>(up_bias),
                                   .up = gated ? Data<T>(up) : nullptr,
                                   .up_stride = up.stride(0),
                                   .up_bias = gated ? Data<T>(up_bias) : nullptr,
                                   .out = out.mutable_data_ptr<T>(),
                                   .out_stride = out.stride(0)});
      return 0;
    });
  }

  bool Attention(const AttentionInputs& inputs) override {
    return WithType(inputs.out, [&](auto zero) {
      using T = decltype(zero);
      const auto table = inputs.model->rotary_tables<T>().AtLeast(inputs.tokens);
      const auto means = inputs.replacements == nullptr
                             ? nullptr
                             : inputs.model->rotary_tables<T>().MeansAtLeast(inputs.tokens);
      const AttentionCall<T> call{.architecture = &inputs.model->architecture(),
                                  .rotary = table.get(),
                                  .rotary_means = means.get(),
                                  .replacements = inputs.replacements,
                                  .layer = inputs.layer,
                                  .sequences = inputs.sequences,
                                  .tokens = inputs.tokens,
                                  .first_query = inputs.first_query,
                                  .queries_per_tile = kQueriesPerTile,
                                  .keys = Data<T>(inputs.keys),
                                  .values = Data<T>(inputs.values),
                                  .queries = Data<T>(inputs.queries),
                                  .in_stride = inputs.keys.stride(0),
                                  .out = inputs.out.mutable_data_ptr<T>(),
                                  .out_stride = inputs.out.stride(0),
                                  .observer = inputs.observer,
                                  .cancel = inputs.cancel};
      return CpuAttention(call, Scratch(zero));
    });
  }

  void Softcap(double cap, const at::Tensor& rows) override {
    WithType(rows, [&](auto zero) {
      using T = decltype(zero);
      GetCpuKernels<T>().softcap(rows.size(0), rows.size(1), cap, rows.mutable_data_ptr<T>(),
                                 rows.stride(0));
      return 0;
    });
  }

  MatrixView View(const at::Tensor& rows) override {
    return {.float64 = rows.scalar_type() == at::kDouble,
            .data = rows.const_data_ptr(),
            .rows = rows.size(0),
            .columns = rows.size(1),
            .stride = rows.stride(0)};
  }

 private:
  AttentionScratch<float>* Scratch(float) { return &float32_scratch_; }
  AttentionScratch<double>* Scratch(double) { return &float64_scratch_; }

  AttentionScratch<float> float32_scratch_;
  AttentionScratch<double> float64_scratch_;
};

}  // namespace

std::unique_ptr<LayerOps> MakeCpuOps() { return std::make_unique<CpuOps>(); }

}  // namespace hopscope::engine

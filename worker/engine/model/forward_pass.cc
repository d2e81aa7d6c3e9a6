#include "worker/engine/model/forward_pass.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/engine/model/layer_ops.h"
#include "worker/engine/model/runnable.h"
#include "worker/engine/model/torch_runtime.h"
#include "worker/engine/model/weight_product.h"
#include "worker/engine/model/weights.h"

namespace hopscope::engine {
namespace {

using checkpoint::Architecture;
using checkpoint::BlockForm;

// Columns of the buffers, per row (a token of a sequence).
struct Widths {
  explicit Widths(const Architecture& a)
      : residual(a.d_model),
        key_value(a.kv_heads * a.d_head),
        heads(a.heads * a.d_head),
        attention_in(2 * key_value + heads),
        mlp_in(a.gated_mlp ? 2 * a.d_mlp : a.d_mlp),
        mlp(a.d_mlp) {}

  int64_t residual;
  int64_t key_value;
  int64_t heads;
  int64_t attention_in;
  int64_t mlp_in;
  int64_t mlp;
};

absl::Status Cancelled() { return absl::CancelledError("the unit was cancelled"); }

}  // namespace

class ForwardPass::Impl {
 public:
  explicit Impl(std::unique_ptr<LayerOps> ops) : ops_(std::move(ops)) {}

  absl::StatusOr<MatrixView> Run(const Model& model, const ForwardRequest& request) {
    const Architecture& a = model.architecture();
    const ModelWeights& weights = model.weights();
    const int64_t rows = request.sequences * request.tokens;
    const bool every_query = request.all_queries || request.all_logits;
    shown_ =
        request.observer == nullptr ? ForwardObserver::Interest{} : request.observer->interest();
    Reserve(model, rows);
    const at::Tensor residual = residual_.narrow(0, 0, rows);
    if (request.residual != nullptr) {
      residual.copy_(AsTensor(*request.residual));
    } else {
      ops_->Embed(model, request.sequences, request.tokens, request.ids, residual);
    }

    const int64_t first_layer = request.residual == nullptr ? 0 : request.first_layer;
    for (int64_t layer = first_layer; layer < a.layers; ++layer) {
      if (Stop(request)) return Cancelled();
      if (shown_.residual) {
        request.observer->OnResidual(layer, ops_->View(residual));
      }
      const bool last_query_only = layer + 1 == a.layers && !every_query;
      if (!RunLayer(model, request, layer, last_query_only)) return Cancelled();
    }
    if (shown_.residual && every_query) {
      request.observer->OnResidual(a.layers, ops_->View(residual));
    }

    const at::Tensor final_rows = request.all_logits ? residual : LastRows(request, residual);
    const at::Tensor normed = normed_.narrow(0, 0, final_rows.size(0));
    ops_->Norm(model, weights.final_norm, final_rows, normed);
    // Rounded to 16 bits, many logits would be equal to the largest.
    const at::ScalarType type = model.half() ? at::kFloat : residual.scalar_type();
    if (!logits_.defined() || logits_.size(0) < normed.size(0) || logits_.size(1) != a.vocab_size ||
        logits_.scalar_type() != type || logits_.device() != residual.device()) {
      logits_ = at::Tensor();
      logits_ = at::empty({normed.size(0), a.vocab_size}, residual.options().dtype(type));
    }
    const at::Tensor logits = logits_.narrow(0, 0, normed.size(0));
    Project(normed, weights.head, logits);
    if (weights.head_bias.defined()) ops_->AddBias(weights.head_bias, logits);
    if (a.logit_softcap > 0) ops_->Softcap(a.logit_softcap, logits);
    if (Stop(request)) return Cancelled();
    return ops_->View(logits);
  }

 private:
  static bool Stop(const ForwardRequest& request) {
    return request.cancel != nullptr && request.cancel->cancelled();
  }

  static at::Tensor AsTensor(const MatrixView& view) {
    return at::from_blob(const_cast<void*>(view.data), {view.rows, view.columns}, {view.stride, 1},
                         view.float64 ? at::kDouble : at::kFloat);
  }

  // Every tokens-th row, from the last token of the first sequence on; no copy.
  static at::Tensor LastRows(const ForwardRequest& request, const at::Tensor& rows) {
    return rows.unflatten(0, {request.sequences, request.tokens}).select(1, request.tokens - 1);
  }

  void Reserve(const Model& model, int64_t rows) {
    const Widths width(model.architecture());
    const at::Tensor& like = model.weights().token_embedding;
    const auto reserve = [&](int64_t columns, at::Tensor* buffer) {
      if (buffer->defined() && buffer->size(0) >= rows && buffer->size(1) == columns &&
          buffer->scalar_type() == like.scalar_type() && buffer->device() == like.device()) {
        return;
      }
      *buffer = at::Tensor();  // frees the old one first
      *buffer = at::empty({rows, columns}, like.options());
    };
    reserve(width.residual, &residual_);
    reserve(width.residual, &normed_);
    reserve(width.attention_in + width.mlp_in, &wide_);
    reserve(width.heads + width.mlp, &inner_);
    if (model.architecture().block == BlockForm::kSandwich) {
      reserve(width.residual, &branch_);
    }
  }

  // rows += what a branch of the block adds: `inner` times its output matrix, plus bias.
  static void AddProduct(const at::Tensor& rows, const at::Tensor& inner,
                         const at::Tensor& matrix) {
    AddMultipliedByWeights(inner, matrix, rows);
  }

  // False where it was cancelled.
  bool RunLayer(const Model& model, const ForwardRequest& request, int64_t layer,
                bool last_query_only) {
    const Architecture& a = model.architecture();
    const LayerWeights& weights = model.weights().layers[layer];
    const Widths width(a);
    const int64_t count = request.sequences * request.tokens;
    const at::Tensor residual = residual_.narrow(0, 0, count);
    const at::Tensor normed = normed_.narrow(0, 0, count);
    const at::Tensor wide = wide_.narrow(0, 0, count);
    const at::Tensor inner = inner_.narrow(0, 0, count);
    // The rows whose queries are asked for: they alone go on through the layer.
    const auto asked = [&](const at::Tensor& rows) {
      return last_query_only ? LastRows(request, rows) : rows;
    };
    const at::Tensor asked_residual = asked(residual);
    const at::Tensor asked_wide = asked(wide);
    const at::Tensor asked_inner = asked(inner);

    ops_->Norm(model, weights.norm1, residual, normed);
    const bool shares_in = SharesIn(a.block);
    const at::Tensor& in = shares_in ? weights.in : weights.attention_in;
    if (last_query_only) {
      const int64_t key_value = 2 * width.key_value;
      Project(normed, in.narrow(0, 0, key_value), wide.narrow(1, 0, key_value));
      Project(asked(normed), in.narrow(0, key_value, in.size(0) - key_value),
              asked_wide.narrow(1, key_value, in.size(0) - key_value));
    } else {
      Project(normed, in, wide.narrow(1, 0, in.size(0)));
    }
    if (weights.attention_in_bias.defined()) {
      // Rows without a query get the query's bias as well: nobody reads it.
      ops_->AddBias(weights.attention_in_bias, wide.narrow(1, 0, width.attention_in));
    }
    if (Stop(request)) return false;

    const at::Tensor keys = wide.narrow(1, 0, width.key_value);
    const at::Tensor values = wide.narrow(1, width.key_value, width.key_value);
    const at::Tensor queries = wide.narrow(1, 2 * width.key_value, width.heads);
    const int64_t first_query = last_query_only ? request.tokens - 1 : 0;
    if (shown_.projections) {
      ShowProjections(request, layer, first_query, keys, queries);
    }
    if (!ops_->Attention({.model = &model,
                          .layer = layer,
                          .sequences = request.sequences,
                          .tokens = request.tokens,
                          .first_query = first_query,
                          .keys = keys,
                          .values = values,
                          .queries = queries,
                          .out = inner.narrow(1, 0, width.heads),
                          .replacements = request.replacements,
                          .observer = shown_.attention ? request.observer : nullptr,
                          .cancel = request.cancel})) {
      return false;
    }
    if (shown_.attended) {
      request.observer->OnAttended(layer, first_query, ops_->View(inner.narrow(1, 0, width.heads)));
    }

    const at::Tensor attended = asked_inner.narrow(1, 0, width.heads);
    const at::Tensor activated = asked_inner.narrow(1, width.heads, width.mlp);
    if (a.block == BlockForm::kSequential) {
      if (!a.residual) asked_residual.zero_();
      AddBranch(weights.attention_out_bias, asked_residual);
      AddProduct(asked_residual, attended, weights.attention_out);
    } else if (a.block == BlockForm::kSandwich) {
      AddNormed(model, attended, weights.attention_out, weights.attention_out_bias,
                weights.norm1_post, asked_residual);
    }
    if (a.d_mlp == 0) return true;
    if (Stop(request)) return false;

    const at::Tensor mlp_wide = asked_wide.narrow(1, width.attention_in, width.mlp_in);
    if (!shares_in) {
      const at::Tensor second = normed_.narrow(0, 0, asked_residual.size(0));
      ops_->Norm(model, weights.norm2, asked_residual, second);
      Project(second, weights.mlp_in, mlp_wide);
    }
    if (Stop(request)) return false;
    ops_->Activate(model, a.gated_mlp ? mlp_wide.narrow(1, 0, width.mlp) : at::Tensor(),
                   mlp_wide.narrow(1, width.mlp_in - width.mlp, width.mlp), weights.mlp_up_bias,
                   activated);
    if (SharesOut(a.block)) {
      AddBranch(weights.out_bias, asked_residual);
      AddProduct(asked_residual, asked_inner, weights.out);
    } else if (a.block == BlockForm::kSequential) {
      if (!a.residual) asked_residual.zero_();
      AddBranch(weights.mlp_out_bias, asked_residual);
      AddProduct(asked_residual, activated, weights.mlp_out);
    } else {
      AddNormed(model, activated, weights.mlp_out, weights.mlp_out_bias, weights.norm2_post,
                asked_residual);
    }
    return true;
  }

  static void Project(const at::Tensor& rows, const at::Tensor& matrix, const at::Tensor& out) {
    MultiplyByWeights(rows, matrix, out);
  }

  void AddBranch(const at::Tensor& bias, const at::Tensor& rows) {
    if (bias.defined()) ops_->AddBias(bias, rows);
  }

  // rows += norm(inner matrix^T + bias)
  void AddNormed(const Model& model, const at::Tensor& inner, const at::Tensor& matrix,
                 const at::Tensor& bias, const NormWeights& norm, const at::Tensor& rows) {
    const at::Tensor branch = branch_.narrow(0, 0, rows.size(0));
    Project(inner, matrix, branch);
    AddBranch(bias, branch);
    ops_->Norm(model, norm, branch, branch);
    ops_->AddRows(branch, rows);
  }

  void ShowProjections(const ForwardRequest& request, int64_t layer, int64_t first_query,
                       const at::Tensor& keys, const at::Tensor& queries) {
    // One view of both, as a view is valid until the next one.
    const int64_t key_columns = keys.size(1);
    LayerProjections projections{.layer = layer,
                                 .sequences = request.sequences,
                                 .tokens = request.tokens,
                                 .first_query = first_query};
    const at::Tensor all =
        wide_.narrow(0, 0, keys.size(0)).narrow(1, 0, 2 * key_columns + queries.size(1));
    const MatrixView view = ops_->View(all);
    projections.keys = view;
    projections.keys.columns = key_columns;
    projections.queries = view;
    projections.queries.columns = queries.size(1);
    projections.queries.data = view.float64
                                   ? static_cast<const void*>(view.Row<double>(0) + 2 * key_columns)
                                   : static_cast<const void*>(view.Row<float>(0) + 2 * key_columns);
    request.observer->OnProjections(projections);
  }

  const std::unique_ptr<LayerOps> ops_;
  ForwardObserver::Interest shown_;  // of the running request
  at::Tensor residual_;              // [rows, d_model]
  at::Tensor normed_;                // [rows, d_model]
  at::Tensor wide_;                  // [rows, keys, values, queries, gate, up]
  at::Tensor inner_;                 // [rows, attended values, activated MLP]
  at::Tensor branch_;                // [rows, d_model], what a branch adds before its norm
  at::Tensor logits_;
};

ForwardPass::ForwardPass(Options options) : options_(options) {}

ForwardPass::~ForwardPass() = default;

int64_t ForwardPass::BufferBytes(const Architecture& architecture, int64_t rows) {
  const Widths width(architecture);
  const int64_t columns =
      3 * width.residual + width.attention_in + width.mlp_in + width.heads + width.mlp;
  return rows * columns * static_cast<int64_t>(sizeof(double));
}

absl::StatusOr<MatrixView> ForwardPass::Run(const Model& model, const ForwardRequest& request) {
  const Architecture& a = model.architecture();
  HOPSCOPE_RETURN_IF_ERROR(CheckLength(a, request.tokens));
  const int64_t ids = request.residual == nullptr ? request.sequences * request.tokens : 0;
  for (int64_t i = 0; i < ids; ++i) {
    if (request.ids[i] < 0 || request.ids[i] >= a.vocab_size) {
      return common::MakeError(
          absl::StatusCode::kInvalidArgument, "TOKEN_OUT_OF_RANGE",
          absl::StrCat("token id ", request.ids[i], " at slot ", i % request.tokens,
                       "; the model's ids are 0 to ", a.vocab_size - 1));
    }
  }
  const bool general = options_.general_operators || model.device().cuda || model.half();
  if (impl_ == nullptr || general != general_) {
    impl_ = std::make_unique<Impl>(general ? MakeGeneralOps() : MakeCpuOps());
    general_ = general;
  }
  MatrixView logits;
  HOPSCOPE_RETURN_IF_ERROR(CatchTorch([&]() -> absl::Status {
    const c10::InferenceMode no_gradients;
    HOPSCOPE_ASSIGN_OR_RETURN(logits, impl_->Run(model, request));
    return absl::OkStatus();
  }));
  return logits;
}

}  // namespace hopscope::engine

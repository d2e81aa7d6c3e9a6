#include "worker/engine/model/general_head_replacement.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <memory>
#include <utility>

#include "worker/engine/model/rotary_table.h"

namespace hopscope::engine {
namespace {

using checkpoint::Architecture;

// Cosines and sines [rows, rotary_dim] of a table, in the type and on the device of `like`.
template <typename T>
std::pair<at::Tensor, at::Tensor> Rows(const RotaryTable<T>& table, int64_t rows,
                                       const at::Tensor& like) {
  const auto copy = [&](const T* from) {
    return at::from_blob(const_cast<T*>(from), {rows, table.columns()},
                         sizeof(T) == sizeof(double) ? at::kDouble : at::kFloat)
        .to(like.options(), /*non_blocking=*/false, /*copy=*/true);
  };
  return {copy(table.cosines(0)), copy(table.sines(0))};
}

std::pair<at::Tensor, at::Tensor> Table(const Model& model, int64_t rows, bool means,
                                        const at::Tensor& like) {
  const auto rows_of = [&](const auto& tables) {
    const auto table = means ? tables.MeansAtLeast(rows) : tables.AtLeast(rows);
    return Rows(*table, rows, like);
  };
  return model.float64() ? rows_of(model.rotary_tables<double>())
                         : rows_of(model.rotary_tables<float>());
}

// The other column of each rotating pair of x [..., rotary_dim], in the first one's place.
at::Tensor Partner(const Architecture& a, const at::Tensor& x) {
  const int64_t last = x.dim() - 1;
  return a.position == checkpoint::PositionKind::kRotaryInterleaved
             ? x.unflatten(last, {a.rotary_dim / 2, 2}).flip({last + 1}).flatten(last)
             : x.unflatten(last, {2, a.rotary_dim / 2}).flip({last}).flatten(last);
}

// One head of all sequences for a run of queries.
struct HeadRun {
  const Model* model = nullptr;
  int64_t layer = 0;
  double slope = 0;
  at::Tensor queries;  // [sequences, n, d_head]
  at::Tensor keys;     // [sequences, tokens, d_head]
  at::Tensor slots;    // [n], the queries' slots
  at::Tensor before;   // [n], keys that they see before themselves
  int64_t end = 0;     // of the queries: the first slot after them
  int64_t first_key = 0;
  int64_t columns = 0;
  at::Tensor distance;  // [n, columns]: query - key
};

at::Tensor PositionalLogits(const HeadRun& run) {
  const Architecture& a = run.model->architecture();
  const at::Tensor keys = run.keys.to(at::kDouble);
  const at::Tensor sums =
      at::cat({at::zeros({keys.size(0), 1, a.d_head}, keys.options()), at::cumsum(keys, 1)}, 1);
  const at::Tensor mean = at::index_select(sums, 1, run.slots)
                              .sub(at::index_select(sums, 1, run.slots.sub(run.before)))
                              .div(run.before.clamp_min(1).unsqueeze(-1))
                              .to(run.queries.scalar_type());
  const int64_t rotating = IsRotary(a.position) ? a.rotary_dim : 0;
  const int64_t still = a.d_head - rotating;
  at::Tensor logits = mean.narrow(2, rotating, still)
                          .mul(run.queries.narrow(2, rotating, still))
                          .sum(at::OptionalIntArrayRef({-1}), /*keepdim=*/true)
                          .expand({-1, -1, run.columns});
  if (rotating > 0) {
    // k^T R^m q = sum over columns c of k_c q_c cos_c(m) + k_c q_partner(c) sin_c(m)
    const auto [cosines, sines] = Table(*run.model, run.end, /*means=*/false, run.queries);
    const at::Tensor q = run.queries.narrow(2, 0, rotating);
    const at::Tensor k = mean.narrow(2, 0, rotating);
    const at::Tensor by_distance =
        at::matmul(k.mul(q), cosines.t()).add_(at::matmul(k.mul(Partner(a, q)), sines.t()));
    logits = logits.add(at::gather(
        by_distance, 2, run.distance.clamp_min(0).unsqueeze(0).expand({keys.size(0), -1, -1})));
  }
  return logits.mul(a.attention_scale[run.layer])
      .sub_(run.distance.to(logits.scalar_type()).mul(run.slope));
}

at::Tensor SymbolicLogits(const HeadRun& run) {
  const Architecture& a = run.model->architecture();
  at::Tensor turned = run.queries.clone();
  if (IsRotary(a.position)) {
    const auto [cosines, sines] = Table(*run.model, run.end, /*means=*/true, run.queries);
    const at::Tensor q = run.queries.narrow(2, 0, a.rotary_dim);
    turned.narrow(2, 0, a.rotary_dim)
        .copy_(q.mul(at::index_select(cosines, 0, run.before))
                   .add_(Partner(a, q).mul(at::index_select(sines, 0, run.before))));
  }
  const at::Tensor bias =
      run.before.to(turned.scalar_type()).add_(1).mul_(-run.slope / 2).unsqueeze(-1);
  return at::matmul(turned, run.keys.narrow(1, run.first_key, run.columns).transpose(1, 2))
      .mul_(a.attention_scale[run.layer])
      .add_(bias);
}

}  // namespace

void ReplaceLogits(const AttentionInputs& inputs, const AttentionRun& run,
                   const at::Tensor& logits) {
  if (inputs.replacements == nullptr) return;
  const Architecture& a = inputs.model->architecture();
  const int64_t window = a.attention_window[inputs.layer];
  const int64_t group = a.heads / a.kv_heads;
  for (const HeadReplacement& replacement : inputs.replacements->heads) {
    const bool positional = replacement.kind == ReplacementKind::kPositionalOnly;
    if (replacement.layer != inputs.layer ||
        (!positional && replacement.kind != ReplacementKind::kSymbolicOnly)) {
      continue;
    }
    const at::TensorOptions integers = logits.options().dtype(at::kLong);
    HeadRun head{.model = inputs.model,
                 .layer = inputs.layer,
                 .queries = run.queries.select(1, replacement.head),
                 .keys = run.keys.select(1, replacement.head / group),
                 .end = run.first_query + run.queries.size(2),
                 .first_key = run.first_key,
                 .columns = logits.size(3)};
    if (a.position == checkpoint::PositionKind::kAlibi) {
      head.slope = a.alibi_slopes[replacement.head];
    }
    head.slots = at::arange(run.first_query, head.end, integers);
    head.before = window > 0 ? head.slots.clamp_max(window - 1) : head.slots;
    head.distance = head.slots.unsqueeze(1).sub(
        at::arange(run.first_key, run.first_key + head.columns, integers).unsqueeze(0));
    const at::Tensor replaced = positional ? PositionalLogits(head) : SymbolicLogits(head);
    const at::Tensor own = logits.select(1, replacement.head);
    own.copy_(at::where(head.distance.eq(0), own, replaced));
  }
}

void ReplaceOutputs(const AttentionInputs& inputs, int64_t first_query, int64_t queries,
                    const at::Tensor& out) {
  if (inputs.replacements == nullptr) return;
  const int64_t d_head = inputs.model->architecture().d_head;
  for (const HeadReplacement& replacement : inputs.replacements->heads) {
    if (replacement.layer != inputs.layer) continue;
    const at::Tensor rows = out.select(1, replacement.head).narrow(1, first_query, queries);
    if (replacement.kind == ReplacementKind::kZero) {
      rows.zero_();
    } else if (replacement.kind == ReplacementKind::kMean) {
      const HeadMeans& means = *inputs.replacements->means;
      const double* const first = means.Row(inputs.layer, first_query) + replacement.head * d_head;
      rows.copy_(at::from_blob(const_cast<double*>(first), {queries, d_head}, {means.columns(), 1},
                               at::kDouble));
    }
  }
}

}  // namespace hopscope::engine

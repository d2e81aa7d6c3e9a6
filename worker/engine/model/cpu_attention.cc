#include "worker/engine/model/cpu_attention.h"

#include <algorithm>

#include "worker/engine/model/cpu_kernels.h"
#include "worker/engine/model/matrix_product.h"

namespace hopscope::engine {
namespace {

// Rows of the weights start at whole cache lines.
template <typename T>
int64_t PaddedColumns(int64_t columns) {
  constexpr int64_t kPerLine = 64 / static_cast<int64_t>(sizeof(T));
  return (columns + kPerLine - 1) / kPerLine * kPerLine;
}

// Writes a head's output where it does not come from attention weights; false where it does.
template <typename T>
bool WriteConstant(const AttentionCall<T>& call, const HeadReplacement& replacement, int64_t row) {
  const int64_t d_head = call.architecture->d_head;
  const int64_t column = replacement.head * d_head;
  for (int64_t token = call.first_query; token < call.tokens; ++token) {
    T* const out = call.out + (row + token) * call.out_stride + column;
    if (replacement.kind == ReplacementKind::kZero) {
      std::fill_n(out, d_head, T{0});
    } else if (replacement.kind == ReplacementKind::kMean) {
      const double* const mean = call.replacements->means->Row(call.layer, token) + column;
      std::transform(mean, mean + d_head, out, [](double x) { return static_cast<T>(x); });
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

template <typename T>
bool CpuAttention(const AttentionCall<T>& call, AttentionScratch<T>* scratch) {
  const checkpoint::Architecture& a = *call.architecture;
  const CpuKernels<T>& kernels = GetCpuKernels<T>();
  const int64_t tokens = call.tokens;
  const int64_t d_head = a.d_head;
  const int64_t tile = std::min(call.queries_per_tile, tokens - call.first_query);
  const int64_t window = a.attention_window[call.layer];
  const int64_t weights_stride = PaddedColumns<T>(tokens);
  T* const keys = scratch->keys.AtLeast(tokens * d_head);
  T* const queries = scratch->queries.AtLeast(tile * d_head);
  T* const weights = scratch->weights.AtLeast(tile * weights_stride);

  const auto turn = [&](int64_t first, int64_t count, const T* in, T factor, T* out) {
    RotationCall<T> rotation{.rows = count,
                             .columns = d_head,
                             .factor = factor,
                             .in = in,
                             .in_stride = call.in_stride,
                             .out = out,
                             .out_stride = d_head};
    if (call.rotary != nullptr) {
      rotation.rotary_columns = call.rotary->columns();
      rotation.interleaved = a.position == checkpoint::PositionKind::kRotaryInterleaved;
      rotation.cosines = call.rotary->cosines(first);
      rotation.sines = call.rotary->sines(first);
      rotation.table_step = call.rotary->columns();
    }
    kernels.rotate(rotation);
  };

  const int64_t group = a.heads / a.kv_heads;
  for (int64_t sequence = 0; sequence < call.sequences; ++sequence) {
    const int64_t row = sequence * tokens;
    for (int64_t kv_head = 0; kv_head < a.kv_heads; ++kv_head) {
      const int64_t kv_column = kv_head * d_head;
      turn(0, tokens, call.keys + row * call.in_stride + kv_column, T{1}, keys);
      for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        const HeadReplacement* const replacement =
            call.replacements == nullptr ? nullptr : call.replacements->Find(call.layer, head);
        if (replacement != nullptr) {
          if (WriteConstant(call, *replacement, row)) continue;
          scratch->replaced.Start({.architecture = &a,
                                   .rotary = call.rotary,
                                   .rotary_means = call.rotary_means,
                                   .kind = replacement->kind,
                                   .layer = call.layer,
                                   .head = head,
                                   .tokens = tokens,
                                   .queries = call.queries + row * call.in_stride + head * d_head,
                                   .keys = call.keys + row * call.in_stride + kv_column,
                                   .stride = call.in_stride});
        }
        for (int64_t query = call.first_query; query < tokens; query += tile) {
          if (call.cancel != nullptr && call.cancel->cancelled()) return false;
          const int64_t count = std::min(tile, tokens - query);
          const int64_t first_key = window > 0 ? std::max<int64_t>(0, query - window + 1) : 0;
          const int64_t columns = query + count - first_key;
          if (replacement != nullptr) {
            scratch->replaced.Compute(query, count, first_key, columns, weights, weights_stride);
          } else {
            turn(query, count, call.queries + (row + query) * call.in_stride + head * d_head,
                 static_cast<T>(a.attention_scale[call.layer]), queries);
            MultiplyTransposed(count, columns, d_head, queries, d_head, keys + first_key * d_head,
                               d_head, weights, weights_stride);
          }
          // Replaced logits have their bias already.
          const bool biased =
              replacement == nullptr && a.position == checkpoint::PositionKind::kAlibi;
          kernels.softmax({.rows = count,
                           .columns = columns,
                           .logits = weights,
                           .stride = weights_stride,
                           .first_query = query,
                           .first_key = first_key,
                           .window = window,
                           .softcap = replacement == nullptr ? a.attention_softcap : 0,
                           .alibi_slope = biased ? a.alibi_slopes[head] : 0});
          if (call.observer != nullptr) {
            call.observer->OnAttention({.layer = call.layer,
                                        .head = head,
                                        .sequence = sequence,
                                        .first_query = query,
                                        .first_key = first_key,
                                        .weights = {.float64 = sizeof(T) == sizeof(double),
                                                    .data = weights,
                                                    .rows = count,
                                                    .columns = columns,
                                                    .stride = weights_stride}});
          }
          Multiply(count, d_head, columns, weights, weights_stride,
                   call.values + (row + first_key) * call.in_stride + kv_column, call.in_stride,
                   call.out + (row + query) * call.out_stride + head * d_head, call.out_stride);
        }
      }
    }
  }
  return true;
}

template bool CpuAttention<float>(const AttentionCall<float>&, AttentionScratch<float>*);
template bool CpuAttention<double>(const AttentionCall<double>&, AttentionScratch<double>*);

}  // namespace hopscope::engine

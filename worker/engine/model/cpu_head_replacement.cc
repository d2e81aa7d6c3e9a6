#include "worker/engine/model/cpu_head_replacement.h"

#include <algorithm>

#include "worker/engine/model/cpu_kernels.h"
#include "worker/engine/model/matrix_product.h"

namespace hopscope::engine {
namespace {

using checkpoint::PositionKind;

// The two columns of a rotary plane.
struct Plane {
  Plane(const checkpoint::Architecture& a, int64_t plane)
      : first(a.position == PositionKind::kRotaryInterleaved ? 2 * plane : plane),
        second(a.position == PositionKind::kRotaryInterleaved ? first + 1
                                                              : plane + a.rotary_dim / 2) {}
  int64_t first;
  int64_t second;
};

}  // namespace

template <typename T>
void ReplacedLogits<T>::Start(const Head& head) {
  head_ = head;
  const checkpoint::Architecture& a = *head.architecture;
  scale_ = a.attention_scale[head.layer];
  slope_ = a.position == PositionKind::kAlibi ? a.alibi_slopes[head.head] : 0;
  window_ = a.attention_window[head.layer];
  if (head.kind != ReplacementKind::kPositionalOnly) return;

  key_sums_.assign((head.tokens + 1) * a.d_head, 0);
  for (int64_t token = 0; token < head.tokens; ++token) {
    const T* const key = head.keys + token * head.stride;
    const double* const before = key_sums_.data() + token * a.d_head;
    double* const after = key_sums_.data() + (token + 1) * a.d_head;
    for (int64_t c = 0; c < a.d_head; ++c) after[c] = before[c] + static_cast<double>(key[c]);
  }
  const int64_t rotating = Rotating();
  const int64_t planes = rotating / 2;
  planes_.resize(head.tokens * rotating);
  for (int64_t distance = 0; distance < head.tokens && planes > 0; ++distance) {
    T* const row = planes_.data() + distance * rotating;
    for (int64_t t = 0; t < planes; ++t) {
      const Plane plane(a, t);
      row[t] = head.rotary->cosines(distance)[plane.first];
      row[planes + t] = head.rotary->sines(distance)[plane.second];
    }
  }
}

template <typename T>
void ReplacedLogits<T>::Compute(int64_t first_query, int64_t queries, int64_t first_key,
                                int64_t keys, T* out, int64_t out_stride) {
  if (head_.kind == ReplacementKind::kPositionalOnly) {
    ComputePositional(first_query, queries, first_key, out, out_stride);
  } else {
    ComputeSymbolic(first_query, queries, first_key, keys, out, out_stride);
  }
  const int64_t d_head = head_.architecture->d_head;
  for (int64_t r = 0; r < queries; ++r) {
    const int64_t query = first_query + r;
    const int64_t before = KeysBefore(query, window_);
    T* const row = out + r * out_stride;
    for (int64_t c = 0; c < keys; ++c) {
      const int64_t distance = query - (first_key + c);
      if (distance < 0 || distance > before) row[c] = 0;
    }
    const T* const own_query = head_.queries + query * head_.stride;
    const T* const own_key = head_.keys + query * head_.stride;
    double self = 0;
    for (int64_t c = 0; c < d_head; ++c) {
      self += static_cast<double>(own_query[c]) * static_cast<double>(own_key[c]);
    }
    row[query - first_key] = static_cast<T>(scale_ * self);
  }
}

template <typename T>
void ReplacedLogits<T>::ComputePositional(int64_t first_query, int64_t queries, int64_t first_key,
                                          T* out, int64_t out_stride) {
  const checkpoint::Architecture& a = *head_.architecture;
  const int64_t rotating = Rotating();
  const int64_t planes = rotating / 2;
  const int64_t distances = KeysBefore(first_query + queries - 1, window_) + 1;
  T* const factors = factors_.AtLeast(queries * rotating);
  rest_.resize(queries);
  std::vector<double> mean(a.d_head);
  for (int64_t r = 0; r < queries; ++r) {
    const int64_t query = first_query + r;
    const int64_t before = KeysBefore(query, window_);
    const double* const to = key_sums_.data() + query * a.d_head;
    const double* const from = key_sums_.data() + (query - before) * a.d_head;
    const double factor = before > 0 ? scale_ / static_cast<double>(before) : 0;
    for (int64_t c = 0; c < a.d_head; ++c) mean[c] = (to[c] - from[c]) * factor;
    const T* const q = head_.queries + query * head_.stride;
    for (int64_t t = 0; t < planes; ++t) {
      // k^T R^m q of one plane: (k1 q1 + k2 q2) cos(m theta) + (k2 q1 - k1 q2) sin(m theta)
      const Plane plane(a, t);
      const double q1 = q[plane.first];
      const double q2 = q[plane.second];
      factors[r * rotating + t] = static_cast<T>(mean[plane.first] * q1 + mean[plane.second] * q2);
      factors[r * rotating + planes + t] =
          static_cast<T>(mean[plane.second] * q1 - mean[plane.first] * q2);
    }
    rest_[r] = 0;
    for (int64_t c = rotating; c < a.d_head; ++c) rest_[r] += mean[c] * static_cast<double>(q[c]);
  }
  T* const products = products_.AtLeast(queries * distances);
  if (rotating > 0) {
    MultiplyTransposed(queries, distances, rotating, factors, rotating, planes_.data(), rotating,
                       products, distances);
  } else {
    std::fill_n(products, queries * distances, T{0});
  }
  for (int64_t r = 0; r < queries; ++r) {
    const int64_t query = first_query + r;
    const int64_t before = KeysBefore(query, window_);
    const int64_t begin = std::max(first_key, query - before);
    for (int64_t key = begin; key < query; ++key) {
      const double bias = rest_[r] - slope_ * static_cast<double>(query - key);
      out[r * out_stride + key - first_key] =
          products[r * distances + query - key] + static_cast<T>(bias);
    }
  }
}

template <typename T>
void ReplacedLogits<T>::ComputeSymbolic(int64_t first_query, int64_t queries, int64_t first_key,
                                        int64_t keys, T* out, int64_t out_stride) {
  const checkpoint::Architecture& a = *head_.architecture;
  T* const turned = turned_.AtLeast(queries * a.d_head);
  const auto turn = [&](int64_t first_row, int64_t rows, int64_t table_row, int64_t table_step) {
    if (rows <= 0) return;
    RotationCall<T> call{.rows = rows,
                         .columns = a.d_head,
                         .factor = static_cast<T>(scale_),
                         .in = head_.queries + (first_query + first_row) * head_.stride,
                         .in_stride = head_.stride,
                         .out = turned + first_row * a.d_head,
                         .out_stride = a.d_head};
    if (head_.rotary_means != nullptr) {
      call.rotary_columns = Rotating();
      call.interleaved = a.position == PositionKind::kRotaryInterleaved;
      call.cosines = head_.rotary_means->cosines(table_row);
      call.sines = head_.rotary_means->sines(table_row);
      call.table_step = table_step;
    }
    GetCpuKernels<T>().rotate(call);
  };
  // Queries that see everything before them, each one slot more than the last; then those with a
  // full window.
  const int64_t growing =
      window_ > 0 ? std::clamp<int64_t>(window_ - first_query, 0, queries) : queries;
  turn(0, growing, first_query, Rotating());
  turn(growing, queries - growing, window_ - 1, 0);
  MultiplyTransposed(queries, keys, a.d_head, turned, a.d_head,
                     head_.keys + first_key * head_.stride, head_.stride, out, out_stride);
  if (slope_ == 0) return;
  for (int64_t r = 0; r < queries; ++r) {
    const auto before = static_cast<double>(KeysBefore(first_query + r, window_));
    const T bias = static_cast<T>(-slope_ * (before + 1) / 2);
    for (int64_t c = 0; c < keys; ++c) out[r * out_stride + c] += bias;
  }
}

template class ReplacedLogits<float>;
template class ReplacedLogits<double>;

}  // namespace hopscope::engine

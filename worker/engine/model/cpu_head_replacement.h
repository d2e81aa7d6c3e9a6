// Logits that know position alone or content alone, for one head of one sequence on a CPU
// (head_replacement.h has the definitions).
//
// A_i[a][p] = scale k_a^T R^(i-p) q_i + bias(i - p) is linear in the key and in the rotation, so
// neither mean needs more work than attention itself:
//   mean_a A_i[a][j] = scale kbar_i^T R^(i-j) q_i + bias(i - j), kbar_i the mean of the keys before
//     i. For each rotary plane t that is c_t cos((i-j) theta_t) + s_t sin((i-j) theta_t): rows of
//     (c, s) times rows of a table, one matrix product for a run of queries.
//   mean_p A_i[j][p] = scale k_j^T M q_i + mean bias, M the mean of the rotations R^1 .. R^n over
//     the n slots before i: the query turned by a table of means, times the keys as they are.
//
// Keeps its buffers; not thread-safe.
#ifndef HOPSCOPE_WORKER_ENGINE_MODEL_CPU_HEAD_REPLACEMENT_H_
#define HOPSCOPE_WORKER_ENGINE_MODEL_CPU_HEAD_REPLACEMENT_H_

#include <cstdint>
#include <vector>

#include "common/checkpoint/architecture.h"
#include "worker/engine/model/aligned_buffer.h"
#include "worker/engine/model/head_replacement.h"
#include "worker/engine/model/rotary_table.h"

namespace hopscope::engine {

template <typename T>
class ReplacedLogits {
 public:
  struct Head {
    const checkpoint::Architecture* architecture = nullptr;
    const RotaryTable<T>* rotary = nullptr;        // null where the model does not rotate
    const RotaryTable<T>* rotary_means = nullptr;  // the same
    ReplacementKind kind = ReplacementKind::kPositionalOnly;  // or kSymbolicOnly
    int64_t layer = 0;
    int64_t head = 0;
    int64_t tokens = 0;
    const T* queries = nullptr;  // of token 0, before position
    const T* keys = nullptr;     // the same
    int64_t stride = 0;          // from one token to the next, of both
  };

  void Start(const Head& head);

  // out[r * out_stride + c] is the logit of query first_query + r against key first_key + c, with
  // scale and bias: ready for the softmax. Keys that the query does not see get 0.
  void Compute(int64_t first_query, int64_t queries, int64_t first_key, int64_t keys, T* out,
               int64_t out_stride);

 private:
  void ComputePositional(int64_t first_query, int64_t queries, int64_t first_key, T* out,
                         int64_t out_stride);
  void ComputeSymbolic(int64_t first_query, int64_t queries, int64_t first_key, int64_t keys,
                       T* out, int64_t out_stride);
  // Columns of a head that rotate.
  int64_t Rotating() const { return head_.rotary == nullptr ? 0 : head_.rotary->columns(); }

  Head head_;
  double scale_ = 0;
  double slope_ = 0;
  int64_t window_ = 0;
  std::vector<double> key_sums_;  // [tokens + 1, d_head]: row i sums the keys before i
  std::vector<T> planes_;         // [tokens, rotating]: cosines, then sines, by distance
  AlignedBuffer<T> factors_;      // [queries, rotating]
  AlignedBuffer<T> products_;     // [queries, distances]
  AlignedBuffer<T> turned_;       // [queries, d_head]
  std::vector<double> rest_;      // [queries]: what the columns that do not rotate add
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_MODEL_CPU_HEAD_REPLACEMENT_H_

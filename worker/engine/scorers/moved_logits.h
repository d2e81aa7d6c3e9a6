// Logits of a query against contents moved to other slots, for one head of one sequence.
//
// With the query at slot n, content a at slot p and rotary positions R, the logit is scale * k_a^T
// R^(n-p) q_n (arXiv 2605.31558, App. C.1): the query turned once for each slot, times all
// contents.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_MOVED_LOGITS_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_MOVED_LOGITS_H_

#include <cstdint>
#include <vector>

#include "common/checkpoint/architecture.h"
#include "worker/engine/model/aligned_buffer.h"
#include "worker/engine/model/rotary_table.h"
#include "worker/engine/scorers/swap_scores.h"

namespace hopscope::engine {

// One head at a time; reusable. Not thread-safe.
template <typename T>
class HeadLogits : public MovedLogits<T> {
 public:
  // `rotary` is null where the model does not rotate; both must outlive the object.
  HeadLogits(const checkpoint::Architecture* architecture, const RotaryTable<T>* rotary)
      : architecture_(*architecture), rotary_(rotary) {}

  // Slots first_slot .. query_slot, the query's own last. `keys` points at the first slot's
  // content, before position is applied; `query` at the query's.
  void Start(int64_t layer, int64_t head, int64_t first_slot, int64_t query_slot, const T* query,
             const T* keys, int64_t key_stride);

  // Logits of the contents in their own slots; the last is the query's own.
  const std::vector<double>& own() const { return own_; }

  void SetOrder(const int32_t* order, int64_t keys) override;
  void Compute(int64_t first_content, int64_t contents, int64_t first_slot, int64_t slots, T* out,
               int64_t stride) override;
  void ComputeTransposed(int64_t first_content, int64_t contents, int64_t first_slot, int64_t slots,
                         T* out, int64_t stride) override;
  void ComputeAlong(int64_t first_content, int64_t first_slot, int64_t count, double* out) override;

 private:
  void Cap(int64_t rows, int64_t columns, T* out, int64_t stride) const;

  const checkpoint::Architecture& architecture_;
  const RotaryTable<T>* const rotary_;

  int64_t first_slot_ = 0;
  int64_t query_slot_ = 0;
  double slope_ = 0;
  const T* keys_ = nullptr;
  int64_t key_stride_ = 0;
  AlignedBuffer<T>
      turned_;  // the query turned for each slot [slots, d_head]; one row without rotation
  std::vector<double> own_;      // [slots]
  std::vector<double> content_;  // without rotation: the part of a logit that goes with the content
  const int32_t* order_ = nullptr;
  AlignedBuffer<T> ordered_keys_;    // [keys, d_head]
  AlignedBuffer<T> ordered_turned_;  // [keys, d_head]
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_MOVED_LOGITS_H_

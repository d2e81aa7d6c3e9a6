// The logits of one query of one head, plane by plane of its rotary embedding.
//
// With the query at slot n, the logit against key j is scale * k_j^T R^(n-j) q_n (arXiv 2605.31558,
// App. C.1), and R turns each plane by itself: the unscaled logit is the sum over planes t of
//   l_t(j) = <k_j^(t), R^(n-j) q_n^(t)>
// and of what the columns that do not rotate add, which is the same at every distance. Biases are
// part of q and k. Both layouts of planes: columns (2t, 2t+1), or (t, t + rotary_dim/2).
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_PLANE_LOGITS_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_PLANE_LOGITS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "common/checkpoint/architecture.h"
#include "worker/engine/model/rotary_table.h"
#include "worker/engine/scorers/swap_scores.h"

namespace hopscope::engine {

// The two columns of a head that plane t turns.
std::pair<int64_t, int64_t> PlaneColumns(const checkpoint::Architecture& architecture, int64_t t);

// One head at a time, in float64; reusable. Not thread-safe.
class PlaneLogits {
 public:
  // `architecture`, of a model that rotates, must outlive the object.
  explicit PlaneLogits(const checkpoint::Architecture* architecture);

  // Keys of `slots` slots, the query's own last, and the query; both before position is applied.
  template <typename T>
  void Start(const RotaryTable<T>& rotary, int64_t slots, const T* query, const T* keys,
             int64_t key_stride);

  int64_t planes() const { return planes_; }
  int64_t slots() const { return slots_; }
  // l_t of each slot [slots].
  const double* logits(int64_t plane) const { return logits_.data() + plane * slots_; }
  // What the columns that do not rotate add [slots].
  const std::vector<double>& rest() const { return rest_; }
  // The sum of both: the whole unscaled logit [slots].
  const std::vector<double>& total() const { return total_; }

  // Columns of plane t: of the keys, and of the query turned by its distance from each slot
  // [slots].
  struct Plane {
    const double* key_x = nullptr;
    const double* key_y = nullptr;
    const double* query_x = nullptr;
    const double* query_y = nullptr;
  };
  Plane plane(int64_t t) const;

 private:
  const checkpoint::Architecture& architecture_;
  const int64_t planes_;
  int64_t slots_ = 0;
  std::vector<double> columns_;  // [planes, 4, slots], as in Plane
  std::vector<double> logits_;   // [planes, slots]
  std::vector<double> rest_;
  std::vector<double> total_;
};

// Logits of contents moved to other slots, of one plane alone: a head of two columns.
class MovedPlaneLogits : public MovedLogits<double> {
 public:
  // `plane` must stay as it is while the object is used; its logits times `scale`.
  void Start(const PlaneLogits::Plane& plane, double scale) {
    plane_ = plane;
    scale_ = scale;
  }

  void SetOrder(const int32_t* order, int64_t keys) override;
  void Compute(int64_t first_content, int64_t contents, int64_t first_slot, int64_t slots,
               double* out, int64_t stride) override;
  void ComputeTransposed(int64_t first_content, int64_t contents, int64_t first_slot, int64_t slots,
                         double* out, int64_t stride) override;
  void ComputeAlong(int64_t first_content, int64_t first_slot, int64_t count, double* out) override;

 private:
  PlaneLogits::Plane plane_;
  double scale_ = 1;
  std::vector<double> ordered_;  // [4, keys], scaled queries
  int64_t keys_ = 0;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_PLANE_LOGITS_H_

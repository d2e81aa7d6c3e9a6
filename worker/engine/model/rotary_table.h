// Cosines and sines of rotary position embedding (Su et al., arXiv 2104.09864), for any number of
// positions.
//
// Row p holds, for column c of a head's rotating columns, cos(p * theta_t) and the sine with the
// sign that the column takes it with: rotated[c] = x[c] * cosine[c] + x[partner(c)] * sine[c],
// where t is the plane of column c and partner(c) its other column. Angles are computed in float64
// whatever T is, so positions may be large. Immutable; thread-safe.
#ifndef HOPSCOPE_WORKER_ENGINE_MODEL_ROTARY_TABLE_H_
#define HOPSCOPE_WORKER_ENGINE_MODEL_ROTARY_TABLE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/checkpoint/architecture.h"
#include "common/mutex.h"

namespace hopscope::engine {

template <typename T>
class RotaryTable {
 public:
  // Positions 0 .. positions-1. `architecture.position` must be one of the rotary kinds.
  RotaryTable(const checkpoint::Architecture& architecture, int64_t positions);

  int64_t positions() const { return positions_; }
  // The same shape with, in row n, the means over positions 1 .. n: the mean of the rotations R^1
  // .. R^n. Row 0 is that of position 0.
  RotaryTable<T> Means(const checkpoint::Architecture& architecture) const;

  // Elements of a row: the rotating columns of a head.
  int64_t columns() const { return columns_; }
  const T* cosines(int64_t position) const { return cosines_.data() + position * columns_; }
  const T* sines(int64_t position) const { return sines_.data() + position * columns_; }

 private:
  int64_t positions_;
  int64_t columns_;
  std::vector<T> cosines_;
  std::vector<T> sines_;
};

// The tables of one model, made longer as longer sequences come. Thread-safe.
template <typename T>
class RotaryTables {
 public:
  explicit RotaryTables(const checkpoint::Architecture* architecture)
      : architecture_(architecture) {}

  // A table of at least that many positions; null where the model does not rotate.
  std::shared_ptr<const RotaryTable<T>> AtLeast(int64_t positions) const;
  // Likewise of RotaryTable::Means.
  std::shared_ptr<const RotaryTable<T>> MeansAtLeast(int64_t positions) const;

 private:
  const checkpoint::Architecture* const architecture_;
  mutable common::Mutex mutex_;
  mutable std::shared_ptr<const RotaryTable<T>> longest_ ABSL_GUARDED_BY(mutex_);
  mutable std::shared_ptr<const RotaryTable<T>> longest_means_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_MODEL_ROTARY_TABLE_H_

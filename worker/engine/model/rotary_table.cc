#include "worker/engine/model/rotary_table.h"

#include <algorithm>
#include <cmath>

namespace hopscope::engine {
namespace {

constexpr int64_t kFirstTableSize = 1024;

}  // namespace

template <typename T>
RotaryTable<T>::RotaryTable(const checkpoint::Architecture& architecture, int64_t positions)
    : positions_(positions), columns_(architecture.rotary_dim) {
  cosines_.resize(positions * columns_);
  sines_.resize(positions * columns_);
  const bool interleaved = architecture.position == checkpoint::PositionKind::kRotaryInterleaved;
  const int64_t planes = columns_ / 2;
  for (int64_t position = 0; position < positions; ++position) {
    for (int64_t plane = 0; plane < planes; ++plane) {
      const double angle = static_cast<double>(position) * architecture.rotary_angles[plane];
      const int64_t first = position * columns_ + (interleaved ? 2 * plane : plane);
      const int64_t second = first + (interleaved ? 1 : planes);
      cosines_[first] = cosines_[second] = static_cast<T>(std::cos(angle));
      sines_[second] = static_cast<T>(std::sin(angle));
      sines_[first] = -sines_[second];
    }
  }
}

template <typename T>
RotaryTable<T> RotaryTable<T>::Means(const checkpoint::Architecture& architecture) const {
  RotaryTable<T> means(*this);
  const bool interleaved = architecture.position == checkpoint::PositionKind::kRotaryInterleaved;
  const int64_t planes = columns_ / 2;
  for (int64_t plane = 0; plane < planes; ++plane) {
    const int64_t first = interleaved ? 2 * plane : plane;
    const int64_t second = first + (interleaved ? 1 : planes);
    double cosines = 0;
    double sines = 0;
    for (int64_t position = 1; position < positions_; ++position) {
      const double angle = static_cast<double>(position) * architecture.rotary_angles[plane];
      cosines += std::cos(angle);
      sines += std::sin(angle);
      const auto count = static_cast<double>(position);
      const int64_t row = position * columns_;
      means.cosines_[row + first] = means.cosines_[row + second] = static_cast<T>(cosines / count);
      means.sines_[row + second] = static_cast<T>(sines / count);
      means.sines_[row + first] = -means.sines_[row + second];
    }
  }
  return means;
}

template <typename T>
std::shared_ptr<const RotaryTable<T>> RotaryTables<T>::AtLeast(int64_t positions) const {
  if (!IsRotary(architecture_->position)) return nullptr;
  common::MutexLock lock(&mutex_);
  if (longest_ == nullptr || longest_->positions() < positions) {
    int64_t size = longest_ == nullptr ? kFirstTableSize : longest_->positions();
    while (size < positions) size *= 2;
    longest_ = std::make_shared<const RotaryTable<T>>(*architecture_, size);
  }
  return longest_;
}

template <typename T>
std::shared_ptr<const RotaryTable<T>> RotaryTables<T>::MeansAtLeast(int64_t positions) const {
  const std::shared_ptr<const RotaryTable<T>> table = AtLeast(positions);
  if (table == nullptr) return nullptr;
  common::MutexLock lock(&mutex_);
  if (longest_means_ == nullptr || longest_means_->positions() < positions) {
    longest_means_ = std::make_shared<const RotaryTable<T>>(table->Means(*architecture_));
  }
  return longest_means_;
}

template class RotaryTable<float>;
template class RotaryTable<double>;
template class RotaryTables<float>;
template class RotaryTables<double>;

}  // namespace hopscope::engine

#include "worker/engine/scorers/plane_logits.h"

namespace hopscope::engine {

std::pair<int64_t, int64_t> PlaneColumns(const checkpoint::Architecture& architecture, int64_t t) {
  if (architecture.position == checkpoint::PositionKind::kRotaryInterleaved) {
    return {2 * t, 2 * t + 1};
  }
  return {t, t + architecture.rotary_dim / 2};
}

PlaneLogits::PlaneLogits(const checkpoint::Architecture* architecture)
    : architecture_(*architecture), planes_(RotaryPlanes(*architecture)) {}

template <typename T>
void PlaneLogits::Start(const RotaryTable<T>& rotary, int64_t slots, const T* query, const T* keys,
                        int64_t key_stride) {
  slots_ = slots;
  columns_.resize(planes_ * 4 * slots);
  logits_.resize(planes_ * slots);
  rest_.assign(slots, 0);
  for (int64_t slot = 0; slot < slots; ++slot) {
    const T* const key = keys + slot * key_stride;
    double sum = 0;
    for (int64_t c = architecture_.rotary_dim; c < architecture_.d_head; ++c) {
      sum += static_cast<double>(key[c]) * static_cast<double>(query[c]);
    }
    rest_[slot] = sum;
  }
  total_ = rest_;
  for (int64_t t = 0; t < planes_; ++t) {
    const auto [x, y] = PlaneColumns(architecture_, t);
    double* const key_x = columns_.data() + t * 4 * slots;
    double* const key_y = key_x + slots;
    double* const query_x = key_y + slots;
    double* const query_y = query_x + slots;
    double* const logits = logits_.data() + t * slots;
    const double qx = static_cast<double>(query[x]);
    const double qy = static_cast<double>(query[y]);
    for (int64_t slot = 0; slot < slots; ++slot) {
      const T* const cosines = rotary.cosines(slots - 1 - slot);
      const T* const sines = rotary.sines(slots - 1 - slot);
      const T* const key = keys + slot * key_stride;
      key_x[slot] = static_cast<double>(key[x]);
      key_y[slot] = static_cast<double>(key[y]);
      query_x[slot] = qx * static_cast<double>(cosines[x]) + qy * static_cast<double>(sines[x]);
      query_y[slot] = qy * static_cast<double>(cosines[y]) + qx * static_cast<double>(sines[y]);
      logits[slot] = key_x[slot] * query_x[slot] + key_y[slot] * query_y[slot];
      total_[slot] += logits[slot];
    }
  }
}

PlaneLogits::Plane PlaneLogits::plane(int64_t t) const {
  const double* const first = columns_.data() + t * 4 * slots_;
  return {.key_x = first,
          .key_y = first + slots_,
          .query_x = first + 2 * slots_,
          .query_y = first + 3 * slots_};
}

template void PlaneLogits::Start<float>(const RotaryTable<float>&, int64_t, const float*,
                                        const float*, int64_t);
template void PlaneLogits::Start<double>(const RotaryTable<double>&, int64_t, const double*,
                                         const double*, int64_t);

void MovedPlaneLogits::SetOrder(const int32_t* order, int64_t keys) {
  keys_ = keys;
  ordered_.resize(4 * keys);
  for (int64_t place = 0; place < keys; ++place) {
    const int32_t slot = order[place];
    ordered_[place] = plane_.key_x[slot];
    ordered_[keys + place] = plane_.key_y[slot];
    ordered_[2 * keys + place] = scale_ * plane_.query_x[slot];
    ordered_[3 * keys + place] = scale_ * plane_.query_y[slot];
  }
}

void MovedPlaneLogits::Compute(int64_t first_content, int64_t contents, int64_t first_slot,
                               int64_t slots, double* out, int64_t stride) {
  const double* const key_x = ordered_.data() + first_content;
  const double* const key_y = key_x + keys_;
  const double* const query_x = ordered_.data() + 2 * keys_ + first_slot;
  const double* const query_y = query_x + keys_;
  for (int64_t i = 0; i < contents; ++i) {
    for (int64_t j = 0; j < slots; ++j) {
      out[i * stride + j] = key_x[i] * query_x[j] + key_y[i] * query_y[j];
    }
  }
}

void MovedPlaneLogits::ComputeTransposed(int64_t first_content, int64_t contents,
                                         int64_t first_slot, int64_t slots, double* out,
                                         int64_t stride) {
  const double* const key_x = ordered_.data() + first_content;
  const double* const key_y = key_x + keys_;
  const double* const query_x = ordered_.data() + 2 * keys_ + first_slot;
  const double* const query_y = query_x + keys_;
  for (int64_t j = 0; j < slots; ++j) {
    for (int64_t i = 0; i < contents; ++i) {
      out[j * stride + i] = key_x[i] * query_x[j] + key_y[i] * query_y[j];
    }
  }
}

void MovedPlaneLogits::ComputeAlong(int64_t first_content, int64_t first_slot, int64_t count,
                                    double* out) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = scale_ * (plane_.key_x[first_content + i] * plane_.query_x[first_slot + i] +
                       plane_.key_y[first_content + i] * plane_.query_y[first_slot + i]);
  }
}

}  // namespace hopscope::engine

#include "worker/engine/scorers/moved_logits.h"

#include <algorithm>
#include <cmath>

#include "worker/engine/model/cpu_kernels.h"
#include "worker/engine/model/matrix_product.h"
#include "worker/engine/scorers/swap_kernels.h"

namespace hopscope::engine {

template <typename T>
void HeadLogits<T>::Start(int64_t layer, int64_t head, int64_t first_slot, int64_t query_slot,
                          const T* query, const T* keys, int64_t key_stride) {
  const checkpoint::Architecture& a = architecture_;
  const int64_t d_head = a.d_head;
  const int64_t slots = query_slot - first_slot + 1;
  first_slot_ = first_slot;
  query_slot_ = query_slot;
  slope_ = a.position == checkpoint::PositionKind::kAlibi ? a.alibi_slopes[head] : 0;
  keys_ = keys;
  key_stride_ = key_stride;

  const bool rotates = rotary_ != nullptr;
  T* const turned = turned_.AtLeast((rotates ? slots : 1) * d_head);
  RotationCall<T> turn{.rows = rotates ? slots : 1,
                       .columns = d_head,
                       .factor = static_cast<T>(a.attention_scale[layer]),
                       .in = query,
                       .in_stride = 0,
                       .out = turned,
                       .out_stride = d_head};
  if (rotates) {
    // Row r stands for slot first_slot + r: turned by the way from there to the query.
    turn.rotary_columns = rotary_->columns();
    turn.interleaved = a.position == checkpoint::PositionKind::kRotaryInterleaved;
    turn.cosines = rotary_->cosines(slots - 1);
    turn.sines = rotary_->sines(slots - 1);
    turn.table_step = -rotary_->columns();
  }
  GetCpuKernels<T>().rotate(turn);

  own_.resize(slots);
  DotRows(slots, d_head, keys, key_stride, turned, rotates ? d_head : 0, own_.data());
  if (a.attention_softcap > 0) {
    for (double& logit : own_) logit = a.attention_softcap * std::tanh(logit / a.attention_softcap);
  }
  if (rotates) return;
  content_ = own_;
  for (int64_t slot = 0; slot < slots; ++slot) {
    own_[slot] += slope_ * static_cast<double>(slot - (slots - 1));
  }
}

template <typename T>
void HeadLogits<T>::SetOrder(const int32_t* order, int64_t keys) {
  order_ = order;
  if (rotary_ == nullptr) return;
  const int64_t d_head = architecture_.d_head;
  const T* const turned = turned_.AtLeast(0);
  T* const ordered_keys = ordered_keys_.AtLeast(keys * d_head);
  T* const ordered_turned = ordered_turned_.AtLeast(keys * d_head);
  for (int64_t place = 0; place < keys; ++place) {
    std::copy_n(keys_ + order[place] * key_stride_, d_head, ordered_keys + place * d_head);
    std::copy_n(turned + order[place] * d_head, d_head, ordered_turned + place * d_head);
  }
}

template <typename T>
void HeadLogits<T>::Compute(int64_t first_content, int64_t contents, int64_t first_slot,
                            int64_t slots, T* out, int64_t stride) {
  if (rotary_ == nullptr) {
    for (int64_t i = 0; i < contents; ++i) {
      const double content = content_[order_[first_content + i]];
      for (int64_t j = 0; j < slots; ++j) {
        const int64_t slot = first_slot_ + order_[first_slot + j];
        out[i * stride + j] =
            static_cast<T>(content + slope_ * static_cast<double>(slot - query_slot_));
      }
    }
    return;
  }
  const int64_t d_head = architecture_.d_head;
  MultiplyTransposed(contents, slots, d_head, ordered_keys_.AtLeast(0) + first_content * d_head,
                     d_head, ordered_turned_.AtLeast(0) + first_slot * d_head, d_head, out, stride);
  Cap(contents, slots, out, stride);
}

template <typename T>
void HeadLogits<T>::ComputeTransposed(int64_t first_content, int64_t contents, int64_t first_slot,
                                      int64_t slots, T* out, int64_t stride) {
  if (rotary_ == nullptr) {
    for (int64_t j = 0; j < slots; ++j) {
      const int64_t slot = first_slot_ + order_[first_slot + j];
      for (int64_t i = 0; i < contents; ++i) {
        out[j * stride + i] = static_cast<T>(content_[order_[first_content + i]] +
                                             slope_ * static_cast<double>(slot - query_slot_));
      }
    }
    return;
  }
  const int64_t d_head = architecture_.d_head;
  MultiplyTransposed(slots, contents, d_head, ordered_turned_.AtLeast(0) + first_slot * d_head,
                     d_head, ordered_keys_.AtLeast(0) + first_content * d_head, d_head, out,
                     stride);
  Cap(slots, contents, out, stride);
}

template <typename T>
void HeadLogits<T>::ComputeAlong(int64_t first_content, int64_t first_slot, int64_t count,
                                 double* out) {
  if (rotary_ == nullptr) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t slot = first_slot_ + first_slot + i;
      out[i] = content_[first_content + i] + slope_ * static_cast<double>(slot - query_slot_);
    }
    return;
  }
  const int64_t d_head = architecture_.d_head;
  DotRows(count, d_head, keys_ + first_content * key_stride_, key_stride_,
          turned_.AtLeast(0) + first_slot * d_head, d_head, out);
  const double cap = architecture_.attention_softcap;
  if (cap <= 0) return;
  for (int64_t i = 0; i < count; ++i) out[i] = cap * std::tanh(out[i] / cap);
}

template <typename T>
void HeadLogits<T>::Cap(int64_t rows, int64_t columns, T* out, int64_t stride) const {
  if (architecture_.attention_softcap > 0) {
    GetCpuKernels<T>().softcap(rows, columns, architecture_.attention_softcap, out, stride);
  }
}

template class HeadLogits<float>;
template class HeadLogits<double>;

}  // namespace hopscope::engine

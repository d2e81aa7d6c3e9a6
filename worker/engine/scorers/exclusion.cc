#include "worker/engine/scorers/exclusion.h"

#include <algorithm>
#include <numeric>

#include "worker/engine/scorers/swap_kernels.h"

namespace hopscope::engine {
namespace {

// Logits that are made together: a square of them fits a core's cache.
constexpr int64_t kTile = 128;
constexpr int64_t kStride = kTile + kSwapPadding;

}  // namespace

double LogitVariance(const double* own_logits, int64_t keys) {
  if (keys == 0) return 0;
  const double m = static_cast<double>(keys);
  const double mean = std::accumulate(own_logits, own_logits + keys, 0.0) / m;
  double squares = 0;
  for (int64_t j = 0; j < keys; ++j) squares += (own_logits[j] - mean) * (own_logits[j] - mean);
  return squares / m;
}

template <typename T>
bool ComputeExclusionBound(const double* own_logits, int64_t keys, MovedLogits<T>* moved,
                           const CancelFlag* cancel, SwapScratch<T>* scratch, double* bound) {
  *bound = 0;
  if (keys == 0) return true;
  scratch->order.resize(keys);
  std::iota(scratch->order.begin(), scratch->order.end(), 0);
  moved->SetOrder(scratch->order.data(), keys);
  T* const logits = scratch->forward.AtLeast(kTile * kStride);
  double sum = 0;
  for (int64_t content = 0; content < keys; content += kTile) {
    const int64_t contents = std::min(kTile, keys - content);
    for (int64_t slot = 0; slot < keys; slot += kTile) {
      if (cancel != nullptr && cancel->cancelled()) return false;
      const int64_t slots = std::min(kTile, keys - slot);
      moved->Compute(content, contents, slot, slots, logits, kStride);
      for (int64_t a = 0; a < contents; ++a) {
        const T* const row = logits + a * kStride;
        const double own = own_logits[content + a];
        for (int64_t p = 0; p < slots; ++p) {
          const double logit = row[p];
          const double from_slot = logit - own_logits[slot + p];
          const double from_content = logit - own;
          sum += from_slot * from_slot + from_content * from_content;
        }
      }
    }
  }
  const double m = static_cast<double>(keys);
  *bound = sum / (m * m);
  return true;
}

template bool ComputeExclusionBound<float>(const double*, int64_t, MovedLogits<float>*,
                                           const CancelFlag*, SwapScratch<float>*, double*);
template bool ComputeExclusionBound<double>(const double*, int64_t, MovedLogits<double>*,
                                            const CancelFlag*, SwapScratch<double>*, double*);

}  // namespace hopscope::engine

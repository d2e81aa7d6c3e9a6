#include "common/scores/weighted_id.h"

#include <algorithm>
#include <cmath>

namespace hopscope::scores {

double WeightedId(const double* max_logits, int64_t planes) {
  if (planes == 0) return std::nan("");
  const double largest = *std::max_element(max_logits, max_logits + planes);
  double weights = 0;
  double sum = 0;
  for (int64_t k = 0; k < planes; ++k) {
    if (!std::isfinite(max_logits[k])) return std::nan("");
    const double weight = std::exp(max_logits[k] - largest);
    weights += weight;
    sum += weight * static_cast<double>(k + 1);
  }
  return sum / weights;
}

}  // namespace hopscope::scores

// Logits out of a matrix, for tests of what swaps keys.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_TESTING_MATRIX_LOGITS_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_TESTING_MATRIX_LOGITS_H_

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "worker/engine/scorers/swap_scores.h"

namespace hopscope::engine {

// Logits that stand in a matrix a[content][slot].
template <typename T>
class MatrixLogits : public MovedLogits<T> {
 public:
  explicit MatrixLogits(std::vector<std::vector<double>> a) : a_(std::move(a)) {}

  void SetOrder(const int32_t* order, int64_t keys) override { order_ = {order, order + keys}; }
  void Compute(int64_t first_content, int64_t contents, int64_t first_slot, int64_t slots, T* out,
               int64_t stride) override {
    ++blocks;
    logits += contents * slots;
    for (int64_t i = 0; i < contents; ++i) {
      for (int64_t j = 0; j < slots; ++j) {
        out[i * stride + j] = static_cast<T>(a_[order_[first_content + i]][order_[first_slot + j]]);
      }
    }
  }
  void ComputeTransposed(int64_t first_content, int64_t contents, int64_t first_slot, int64_t slots,
                         T* out, int64_t stride) override {
    for (int64_t i = 0; i < contents; ++i) {
      for (int64_t j = 0; j < slots; ++j) {
        out[j * stride + i] = static_cast<T>(a_[order_[first_content + i]][order_[first_slot + j]]);
      }
    }
  }

  void ComputeAlong(int64_t first_content, int64_t first_slot, int64_t count,
                    double* out) override {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<T>(a_[first_content + i][first_slot + i]);
    }
  }

  int blocks = 0;
  int64_t logits = 0;

 private:
  const std::vector<std::vector<double>> a_;
  std::vector<int32_t> order_;
};

inline std::vector<std::vector<double>> RandomLogits(int m, double spread, int seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, spread);
  std::vector<std::vector<double>> a(m, std::vector<double>(m));
  for (auto& row : a) {
    for (double& logit : row) logit = normal(random);
  }
  return a;
}

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_TESTING_MATRIX_LOGITS_H_

// Keeps what one sequence's forward pass shows: the residual stream and the attention weights.
#ifndef HOPSCOPE_WORKER_ENGINE_MODEL_CAPTURE_H_
#define HOPSCOPE_WORKER_ENGINE_MODEL_CAPTURE_H_

#include <cstdint>
#include <vector>

#include "common/checkpoint/architecture.h"
#include "worker/engine/model/activations.h"

namespace hopscope::engine {

// For a batch of one sequence. T is what the numbers are kept in; not thread-safe.
template <typename T>
class Capture : public ForwardObserver {
 public:
  // `architecture` must outlive the object.
  Capture(const checkpoint::Architecture* architecture, int64_t tokens, bool residual,
          bool attention);

  Interest interest() const override {
    return {.residual = !residual_.empty(), .attention = !attention_.empty()};
  }
  void OnResidual(int64_t layer, const MatrixView& rows) override;
  void OnAttention(const AttentionWeights& attention) override;

  // [layers + 1, tokens, d_model]: what enters each block, then what leaves the last one.
  const std::vector<T>& residual() const { return residual_; }
  // [layers, heads, tokens, tokens]
  const std::vector<T>& attention() const { return attention_; }

 private:
  const checkpoint::Architecture& architecture_;
  const int64_t tokens_;
  std::vector<T> residual_;
  std::vector<T> attention_;
};

// Copies a view row by row, converting its numbers.
template <typename T>
void CopyRows(const MatrixView& view, T* out, int64_t out_stride);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_MODEL_CAPTURE_H_

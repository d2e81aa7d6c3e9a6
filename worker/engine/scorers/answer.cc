#include "worker/engine/scorers/answer.h"

#include <cmath>

#include "worker/engine/model/cpu_kernels.h"

namespace hopscope::engine {
namespace {

template <typename T>
Answer AnswerOfRow(int64_t columns, const T* logits, int32_t label) {
  const int64_t largest = GetCpuKernels<T>().argmax(columns, logits);
  if (largest < 0) return {};
  Answer answer{.finite = true};
  if (label < 0) return answer;
  answer.correct = largest == label;
  const auto top = static_cast<double>(logits[largest]);
  double sum = 0;
  for (int64_t c = 0; c < columns; ++c) sum += std::exp(static_cast<double>(logits[c]) - top);
  answer.loss = std::log(sum) + (top - static_cast<double>(logits[label]));
  return answer;
}

}  // namespace

Answer AnswerOf(const MatrixView& logits, int64_t row, int32_t label) {
  return logits.float64 ? AnswerOfRow(logits.columns, logits.Row<double>(row), label)
                        : AnswerOfRow(logits.columns, logits.Row<float>(row), label);
}

}  // namespace hopscope::engine

#include "worker/engine/model/capture.h"

#include <algorithm>

namespace hopscope::engine {

template <typename T>
Capture<T>::Capture(const checkpoint::Architecture* architecture, int64_t tokens, bool residual,
                    bool attention)
    : architecture_(*architecture), tokens_(tokens) {
  if (residual) residual_.resize((architecture_.layers + 1) * tokens * architecture_.d_model);
  if (attention) {
    attention_.resize(architecture_.layers * architecture_.heads * tokens * tokens);
  }
}

template <typename T>
void Capture<T>::OnResidual(int64_t layer, const MatrixView& rows) {
  const int64_t d_model = architecture_.d_model;
  CopyRows(rows, residual_.data() + layer * tokens_ * d_model, d_model);
}

template <typename T>
void Capture<T>::OnAttention(const AttentionWeights& attention) {
  const int64_t matrix = attention.layer * architecture_.heads + attention.head;
  CopyRows(attention.weights,
           attention_.data() + (matrix * tokens_ + attention.first_query) * tokens_ +
               attention.first_key,
           tokens_);
}

template <typename T>
void CopyRows(const MatrixView& view, T* out, int64_t out_stride) {
  for (int64_t row = 0; row < view.rows; ++row) {
    T* const to = out + row * out_stride;
    if (view.float64) {
      std::copy_n(view.Row<double>(row), view.columns, to);
    } else {
      std::copy_n(view.Row<float>(row), view.columns, to);
    }
  }
}

template class Capture<float>;
template class Capture<double>;
template void CopyRows<float>(const MatrixView&, float*, int64_t);
template void CopyRows<double>(const MatrixView&, double*, int64_t);

}  // namespace hopscope::engine

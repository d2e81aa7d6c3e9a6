// Products of activations with a weight matrix, in any of the formats that a model is computed in.
//
// Matrices hold outputs in rows: [outputs, inputs]; rows of activations may lie apart. In float64
// and float32 sums are in that format. In bfloat16 and float16 they are float32 and rounded once,
// at the end, where `out` is of that format: on CPUs by float32 arithmetic on widened copies (the
// products are exact in it), so that a result is the same whether or not a processor has
// instructions of its own for the format.
//
// On CPUs a row of the result depends on its row and the matrix alone, not on how many rows there
// are: products are made of whole blocks of 16 rows, filled up with zeros where need be.
//
// For this folder's .cc files only; may throw LibTorch's exceptions. Thread-safe.
#ifndef HOPSCOPE_WORKER_ENGINE_MODEL_WEIGHT_PRODUCT_H_
#define HOPSCOPE_WORKER_ENGINE_MODEL_WEIGHT_PRODUCT_H_

#include <ATen/core/Tensor.h>

namespace hopscope::engine {

// out [n, outputs] = rows [n, inputs] matrix^T. `out` is of the same format, or float32 where the
// others are of 16 bits.
void MultiplyByWeights(const at::Tensor& rows, const at::Tensor& matrix, const at::Tensor& out);

// out += rows matrix^T
void AddMultipliedByWeights(const at::Tensor& rows, const at::Tensor& matrix,
                            const at::Tensor& out);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_MODEL_WEIGHT_PRODUCT_H_

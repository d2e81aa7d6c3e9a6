// Matrix products on raw CPU memory: the BLAS that LibTorch brings along.
//
// Matrices are row-major with a stride between rows. They run on the calling thread alone where
// that called UseOneTorchThread (torch_runtime.h). `c` may hold anything before. Thread-safe.
#ifndef HOPSCOPE_WORKER_ENGINE_MODEL_MATRIX_PRODUCT_H_
#define HOPSCOPE_WORKER_ENGINE_MODEL_MATRIX_PRODUCT_H_

#include <cstdint>

namespace hopscope::engine {

// c [m, n] = a [m, k] b [k, n]
void Multiply(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_stride, const float* b,
              int64_t b_stride, float* c, int64_t c_stride);
void Multiply(int64_t m, int64_t n, int64_t k, const double* a, int64_t a_stride, const double* b,
              int64_t b_stride, double* c, int64_t c_stride);

// c [m, n] = a [m, k] b^T, b [n, k]
void MultiplyTransposed(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_stride,
                        const float* b, int64_t b_stride, float* c, int64_t c_stride);
void MultiplyTransposed(int64_t m, int64_t n, int64_t k, const double* a, int64_t a_stride,
                        const double* b, int64_t b_stride, double* c, int64_t c_stride);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_MODEL_MATRIX_PRODUCT_H_

#include "worker/engine/model/matrix_product.h"

// The Fortran interface of BLAS (https://www.netlib.org/blas/): column-major, everything by
// address.
extern "C" {
void sgemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k,
            const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
            const float* beta, float* c, const int* ldc);
void dgemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k,
            const double* alpha, const double* a, const int* lda, const double* b, const int* ldb,
            const double* beta, double* c, const int* ldc);
}

namespace hopscope::engine {
namespace {

// A row-major matrix is the transpose of the column-major one in the same memory, so the product is
// c^T = b^T a^T.
template <typename T, typename Gemm>
void RowMajor(Gemm gemm, const char* transpose_b, int64_t m, int64_t n, int64_t k, const T* a,
              int64_t a_stride, const T* b, int64_t b_stride, T* c, int64_t c_stride) {
  if (m == 0 || n == 0) return;
  const int rows = static_cast<int>(m);
  const int columns = static_cast<int>(n);
  const int inner = static_cast<int>(k);
  const int lda = static_cast<int>(a_stride);
  const int ldb = static_cast<int>(b_stride);
  const int ldc = static_cast<int>(c_stride);
  const T one = 1;
  const T zero = 0;
  gemm(transpose_b, "N", &columns, &rows, &inner, &one, b, &ldb, a, &lda, &zero, c, &ldc);
}

}  // namespace

void Multiply(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_stride, const float* b,
              int64_t b_stride, float* c, int64_t c_stride) {
  RowMajor(sgemm_, "N", m, n, k, a, a_stride, b, b_stride, c, c_stride);
}

void Multiply(int64_t m, int64_t n, int64_t k, const double* a, int64_t a_stride, const double* b,
              int64_t b_stride, double* c, int64_t c_stride) {
  RowMajor(dgemm_, "N", m, n, k, a, a_stride, b, b_stride, c, c_stride);
}

void MultiplyTransposed(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_stride,
                        const float* b, int64_t b_stride, float* c, int64_t c_stride) {
  RowMajor(sgemm_, "T", m, n, k, a, a_stride, b, b_stride, c, c_stride);
}

void MultiplyTransposed(int64_t m, int64_t n, int64_t k, const double* a, int64_t a_stride,
                        const double* b, int64_t b_stride, double* c, int64_t c_stride) {
  RowMajor(dgemm_, "T", m, n, k, a, a_stride, b, b_stride, c, c_stride);
}

}  // namespace hopscope::engine

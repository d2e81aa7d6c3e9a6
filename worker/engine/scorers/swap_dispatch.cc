#include "worker/engine/model/cpu_kernels.h"
#include "worker/engine/scorers/swap_kernels.h"

namespace hopscope::engine {

#define HOPSCOPE_DECLARE_KERNELS(isa)                                                   \
  namespace isa {                                                                       \
  void AddSwapsFloat32(const SwapBlock<float>& block, SwapSums* sums);                  \
  void AddSwapsFloat64(const SwapBlock<double>& block, SwapSums* sums);                 \
  void DotRowsFloat32(int64_t rows, int64_t columns, const float* a, int64_t a_stride,  \
                      const float* b, int64_t b_stride, double* out);                   \
  void DotRowsFloat64(int64_t rows, int64_t columns, const double* a, int64_t a_stride, \
                      const double* b, int64_t b_stride, double* out);                  \
  }
HOPSCOPE_DECLARE_KERNELS(isa_baseline)
#ifdef HOPSCOPE_X86_KERNELS
HOPSCOPE_DECLARE_KERNELS(isa_avx2)
HOPSCOPE_DECLARE_KERNELS(isa_avx512)
#define HOPSCOPE_BEST(function)                          \
  (GetCpuIsa() == CpuIsa::kAvx512 ? isa_avx512::function \
   : GetCpuIsa() == CpuIsa::kAvx2 ? isa_avx2::function   \
                                  : isa_baseline::function)
#else
#define HOPSCOPE_BEST(function) isa_baseline::function
#endif
#undef HOPSCOPE_DECLARE_KERNELS

void AddSwaps(const SwapBlock<float>& block, SwapSums* sums) {
  HOPSCOPE_BEST(AddSwapsFloat32)(block, sums);
}

void AddSwaps(const SwapBlock<double>& block, SwapSums* sums) {
  HOPSCOPE_BEST(AddSwapsFloat64)(block, sums);
}

void DotRows(int64_t rows, int64_t columns, const float* a, int64_t a_stride, const float* b,
             int64_t b_stride, double* out) {
  HOPSCOPE_BEST(DotRowsFloat32)(rows, columns, a, a_stride, b, b_stride, out);
}

void DotRows(int64_t rows, int64_t columns, const double* a, int64_t a_stride, const double* b,
             int64_t b_stride, double* out) {
  HOPSCOPE_BEST(DotRowsFloat64)(rows, columns, a, a_stride, b, b_stride, out);
}

#undef HOPSCOPE_BEST

}  // namespace hopscope::engine

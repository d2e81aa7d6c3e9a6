#include <string>

#include "worker/engine/model/cpu_kernels.h"
#include "worker/engine/model/torch_runtime.h"

namespace hopscope::engine {

#define HOPSCOPE_DECLARE_KERNELS(isa)         \
  namespace isa {                             \
  const CpuKernels<float>& Float32Kernels();  \
  const CpuKernels<double>& Float64Kernels(); \
  }
HOPSCOPE_DECLARE_KERNELS(isa_baseline)
#ifdef HOPSCOPE_X86_KERNELS
HOPSCOPE_DECLARE_KERNELS(isa_avx2)
HOPSCOPE_DECLARE_KERNELS(isa_avx512)
#endif
#undef HOPSCOPE_DECLARE_KERNELS

bool CpuHas(CpuIsa isa) {
#ifdef HOPSCOPE_X86_KERNELS
  if (isa == CpuIsa::kAvx512) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  }
  if (isa == CpuIsa::kAvx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
  return isa == CpuIsa::kBaseline;
}

CpuIsa GetCpuIsa() {
  static const CpuIsa isa = [] {
    const std::string capability = TorchCpuCapability();
    if (capability == "AVX512" && CpuHas(CpuIsa::kAvx512)) return CpuIsa::kAvx512;
    if (capability == "AVX2" && CpuHas(CpuIsa::kAvx2)) return CpuIsa::kAvx2;
    return CpuIsa::kBaseline;
  }();
  return isa;
}

const char* CpuIsaName() {
  switch (GetCpuIsa()) {
    case CpuIsa::kAvx512:
      return "avx512";
    case CpuIsa::kAvx2:
      return "avx2";
    case CpuIsa::kBaseline:
      break;
  }
  return "baseline";
}

template <>
const CpuKernels<float>& CpuKernelsOf<float>([[maybe_unused]] CpuIsa isa) {
#ifdef HOPSCOPE_X86_KERNELS
  if (isa == CpuIsa::kAvx512) return isa_avx512::Float32Kernels();
  if (isa == CpuIsa::kAvx2) return isa_avx2::Float32Kernels();
#endif
  return isa_baseline::Float32Kernels();
}

template <>
const CpuKernels<double>& CpuKernelsOf<double>([[maybe_unused]] CpuIsa isa) {
#ifdef HOPSCOPE_X86_KERNELS
  if (isa == CpuIsa::kAvx512) return isa_avx512::Float64Kernels();
  if (isa == CpuIsa::kAvx2) return isa_avx2::Float64Kernels();
#endif
  return isa_baseline::Float64Kernels();
}

}  // namespace hopscope::engine

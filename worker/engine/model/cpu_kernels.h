// The loops of the forward pass that are not matrix products, for CPUs: one table of functions per
// instruction set.
//
// Matrices are row-major with a stride between rows, in elements. Nothing is allocated, nothing
// throws; pure functions of their arguments; thread-safe.
#ifndef HOPSCOPE_WORKER_ENGINE_MODEL_CPU_KERNELS_H_
#define HOPSCOPE_WORKER_ENGINE_MODEL_CPU_KERNELS_H_

#include <stdint.h>

namespace hopscope::engine {

// out = (x - mean(x)) / sqrt(variance(x) + epsilon) * gain + bias, row by row; without the mean
// where `rms` (Zhang and Sennrich, arXiv 1910.07467).
template <typename T>
struct NormCall {
  int64_t rows = 0;
  int64_t columns = 0;
  const T* in = nullptr;
  int64_t in_stride = 0;
  const T* gain = nullptr;  // [columns]
  const T* bias = nullptr;  // [columns], or null
  double epsilon = 0;
  bool rms = false;
  T* out = nullptr;
  int64_t out_stride = 0;
};

enum class ActivationKind { kGeluTanh, kGeluErf, kRelu, kSilu };

// out = act(in + bias), or act(in + bias) * (up + up_bias) where `up` is given.
template <typename T>
struct ActivationCall {
  ActivationKind kind = ActivationKind::kGeluTanh;
  // The c of x / 2 * (1 + tanh(c * (x + 0.044715 x^3))).
  double gelu_tanh_factor = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  const T* in = nullptr;
  int64_t in_stride = 0;
  const T* bias = nullptr;  // [columns], or null
  const T* up = nullptr;    // or null
  int64_t up_stride = 0;
  const T* up_bias = nullptr;  // [columns], or null
  T* out = nullptr;
  int64_t out_stride = 0;
};

// Row r of `out` is factor * R(r) in_r, where R(r) turns the pairs of the first `rotary_columns`
// columns by the angles of row r of the tables and leaves the others alone (Su et al., arXiv
// 2104.09864). Tables: rotary_table.h; `table_step` is the way from one row's angles to the next
// row's. `in_stride` may be 0: the same row turned many ways.
template <typename T>
struct RotationCall {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t rotary_columns = 0;
  bool interleaved = true;  // pairs (2t, 2t+1); else (t, t + rotary_columns / 2)
  const T* cosines = nullptr;
  const T* sines = nullptr;
  int64_t table_step = 0;
  T factor = 1;
  const T* in = nullptr;
  int64_t in_stride = 0;
  T* out = nullptr;
  int64_t out_stride = 0;
};

// Turns logits into attention weights, row by row and in place: row r belongs to query first_query
// + r, column c to key first_key + c. Keys after the query, or `window` or more before it (0: no
// window), get 0. Before the softmax a logit l becomes softcap * tanh(l / softcap) (0: it stays),
// plus alibi_slope * (key - query) (Press et al., arXiv 2108.12409). The largest logit is
// subtracted first.
template <typename T>
struct SoftmaxCall {
  int64_t rows = 0;
  int64_t columns = 0;
  T* logits = nullptr;
  int64_t stride = 0;
  int64_t first_query = 0;
  int64_t first_key = 0;
  int64_t window = 0;
  double softcap = 0;
  double alibi_slope = 0;
};

template <typename T>
struct CpuKernels {
  void (*norm)(const NormCall<T>&);
  void (*activate)(const ActivationCall<T>&);
  void (*rotate)(const RotationCall<T>&);
  void (*softmax)(const SoftmaxCall<T>&);
  // rows of `matrix` += bias
  void (*add_bias)(int64_t rows, int64_t columns, const T* bias, T* matrix, int64_t stride);
  // matrix = cap * tanh(matrix / cap)
  void (*softcap)(int64_t rows, int64_t columns, double cap, T* matrix, int64_t stride);
  // The column of the largest element, the lowest on ties; -1 where an element is NaN or infinite.
  int64_t (*argmax)(int64_t columns, const T* row);
};

// Instruction sets that files are compiled for.
enum class CpuIsa { kBaseline, kAvx2, kAvx512 };

// Whether this machine, and this build, have it.
bool CpuHas(CpuIsa isa);

// The one that LibTorch uses as well (at::get_cpu_capability; the environment's ATEN_CPU_CAPABILITY
// lowers it). It is part of an engine's kind.
CpuIsa GetCpuIsa();

// "avx512", "avx2" or "baseline".
const char* CpuIsaName();

// The table of an instruction set that the machine has.
template <typename T>
const CpuKernels<T>& CpuKernelsOf(CpuIsa isa);

// The table of GetCpuIsa().
template <typename T>
const CpuKernels<T>& GetCpuKernels() {
  return CpuKernelsOf<T>(GetCpuIsa());
}

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_MODEL_CPU_KERNELS_H_

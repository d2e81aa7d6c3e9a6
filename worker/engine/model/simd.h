// Vectors of the instruction set that a file is compiled for, and functions of them: sums, square
// roots, exponentials.
//
// Files that include this are compiled once per instruction set, with HOPSCOPE_ISA naming the
// namespace (see CMakeLists.txt). They include no standard templates and define nothing with
// external linkage outside that namespace: the linker would otherwise be free to use, say, AVX-512
// code of a shared inline function on a machine without it.
#ifndef HOPSCOPE_WORKER_ENGINE_MODEL_SIMD_H_
#define HOPSCOPE_WORKER_ENGINE_MODEL_SIMD_H_

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace hopscope::engine::HOPSCOPE_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <typename T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
};
template <typename T>
using Vector = typename VectorOf<T>::Type;

template <typename T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

// The integer type of the same width.
template <typename T>
struct BitsOf;
template <>
struct BitsOf<float> {
  using Type = int32_t;
};
template <>
struct BitsOf<double> {
  using Type = int64_t;
};
template <typename T>
using Bits = typename BitsOf<T>::Type;

template <typename T>
inline Vector<T> Broadcast(T value) {
  return Vector<T>{} + value;
}

template <typename T>
inline Vector<T> Load(const T* from) {
  Vector<T> value;
  memcpy(&value, from, sizeof(value));
  return value;
}

template <typename T>
inline void Store(T* to, Vector<T> value) {
  memcpy(to, &value, sizeof(value));
}

// The first `count` elements, 0 < count < kLanes; the other lanes are `fill`.
template <typename T>
inline Vector<T> LoadPartial(const T* from, int64_t count, T fill) {
  Vector<T> value = Broadcast(fill);
  for (int64_t i = 0; i < count; ++i) value[i] = from[i];
  return value;
}

template <typename T>
inline void StorePartial(T* to, Vector<T> value, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = value[i];
}

// Sum of the lanes, by halves.
template <typename T>
inline T SumLanes(Vector<T> value) {
  T lanes[kLanes<T>];
  memcpy(lanes, &value, sizeof(value));
  for (int width = kLanes<T> / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

template <typename T>
inline T MaxLanes(Vector<T> value) {
  T lanes[kLanes<T>];
  memcpy(lanes, &value, sizeof(value));
  for (int width = kLanes<T> / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) {
      lanes[i] = lanes[i] > lanes[i + width] ? lanes[i] : lanes[i + width];
    }
  }
  return lanes[0];
}

// With a mask of all lanes: the unmasked forms set off a false warning in GCC 12.
inline Vector<float> Sqrt(Vector<float> value) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vector<float>>(
      _mm512_maskz_sqrt_ps(0xffff, reinterpret_cast<__m512>(value)));
#elif defined(__AVX2__)
  return reinterpret_cast<Vector<float>>(_mm256_sqrt_ps(reinterpret_cast<__m256>(value)));
#else
  for (int i = 0; i < kLanes<float>; ++i) value[i] = sqrtf(value[i]);
  return value;
#endif
}

inline Vector<double> Sqrt(Vector<double> value) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vector<double>>(
      _mm512_maskz_sqrt_pd(0xff, reinterpret_cast<__m512d>(value)));
#elif defined(__AVX2__)
  return reinterpret_cast<Vector<double>>(_mm256_sqrt_pd(reinterpret_cast<__m256d>(value)));
#else
  for (int i = 0; i < kLanes<double>; ++i) value[i] = sqrt(value[i]);
  return value;
#endif
}

// What exp needs of a number format. Below kLowest e^x is smaller than the smallest normal number,
// and taken for 0; above kHighest it stays at e^kHighest.
template <typename T>
struct ExpConstants;

template <>
struct ExpConstants<float> {
  static constexpr float kLowest = -87.336544f;
  static constexpr float kHighest = 88.02969f;
  static constexpr float kLog2E = 1.44269504088896340736f;
  // ln 2 in two parts: the first has few enough bits for its product with a small integer to be
  // exact.
  static constexpr float kLn2High = 0.693359375f;
  static constexpr float kLn2Low = -2.12194440e-4f;
  static constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  static constexpr int kMantissa = 23;
  static constexpr int kDegree = 7;  // the first term left out is below 6e-9 for |x| <= ln 2 / 2
};

template <>
struct ExpConstants<double> {
  static constexpr double kLowest = -708.3964185322641;
  static constexpr double kHighest = 709.0;
  static constexpr double kLog2E = 1.44269504088896340736;
  static constexpr double kLn2High = 0.693145751953125;
  static constexpr double kLn2Low = 1.42860682030941723212e-6;
  static constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr int kMantissa = 52;
  static constexpr int kDegree = 13;  // 5e-18
};

constexpr double InverseFactorial(int n) {
  double product = 1;
  for (int i = 2; i <= n; ++i) product *= i;
  return 1.0 / product;
}

// e^x by lanes, to about one unit in the last place: 2^n times the Taylor series of the rest. NaN
// stays NaN.
template <typename T>
inline Vector<T> Exp(Vector<T> x) {
  using C = ExpConstants<T>;
  const Vector<T> clamped = x > C::kHighest ? Broadcast(C::kHighest) : x;
  const Vector<T> shifted = clamped * C::kLog2E + C::kRound;
  const Vector<T> n = shifted - C::kRound;
  const Vector<T> rest = (clamped - n * C::kLn2High) - n * C::kLn2Low;
  Vector<T> series = Broadcast(static_cast<T>(InverseFactorial(C::kDegree)));
  for (int k = C::kDegree - 1; k >= 0; --k) {
    series = series * rest + static_cast<T>(InverseFactorial(k));
  }
  // The low bits of `shifted` hold n; moved into the exponent they multiply by 2^n.
  const Vector<Bits<T>> exponent = reinterpret_cast<Vector<Bits<T>>>(shifted) << C::kMantissa;
  const Vector<T> scaled =
      reinterpret_cast<Vector<T>>(reinterpret_cast<Vector<Bits<T>>>(series) + exponent);
  const Vector<T> flushed = x < C::kLowest ? Broadcast(T{0}) : scaled;
  return x != x ? x : flushed;
}

}  // namespace
}  // namespace hopscope::engine::HOPSCOPE_ISA

#endif  // HOPSCOPE_WORKER_ENGINE_MODEL_SIMD_H_

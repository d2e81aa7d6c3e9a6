#include "worker/engine/model/read_weight.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace hopscope::engine {
namespace {

using checkpoint::TensorDtype;

float FromBfloat16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// IEEE 754 binary16: 1 sign, 5 exponent, 10 mantissa bits.
float FromFloat16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 127 - 15) << 23 | mantissa << 13);
}

// Element `index` of the tensor's bytes, which need not be aligned.
template <TensorDtype kDtype, typename T>
T Element(const char* bytes, int64_t index) {
  if constexpr (kDtype == TensorDtype::kF64) {
    double value;
    std::memcpy(&value, bytes + index * 8, sizeof(value));
    return static_cast<T>(value);
  } else if constexpr (kDtype == TensorDtype::kF32) {
    float value;
    std::memcpy(&value, bytes + index * 4, sizeof(value));
    return static_cast<T>(value);
  } else {
    uint16_t bits;
    std::memcpy(&bits, bytes + index * 2, sizeof(bits));
    return static_cast<T>(kDtype == TensorDtype::kBF16 ? FromBfloat16(bits) : FromFloat16(bits));
  }
}

template <TensorDtype kDtype, typename T>
void Read(const checkpoint::WeightSlice& slice, T* out, int64_t stride) {
  const char* const bytes = slice.tensor.bytes.data();
  const int64_t block = slice.block > 0 ? slice.block : slice.rows;
  // Elements from one row of the stored matrix to the next.
  const int64_t pitch = slice.tensor.shape.size() >= 2 ? slice.tensor.shape.back() : 1;
  for (int64_t row = 0; row < slice.rows; ++row) {
    const int64_t stored = slice.first + row / block * slice.stride + row % block;
    T* const to = out + row * stride;
    if (slice.transposed) {
      for (int64_t column = 0; column < slice.columns; ++column) {
        to[column] = Element<kDtype, T>(bytes, column * pitch + stored);
      }
    } else {
      for (int64_t column = 0; column < slice.columns; ++column) {
        to[column] = Element<kDtype, T>(bytes, stored * pitch + column);
      }
    }
  }
}

}  // namespace

template <typename T>
void ReadWeight(const checkpoint::WeightSlice& slice, T* out, int64_t stride) {
  switch (slice.tensor.dtype) {
    case TensorDtype::kF64:
      return Read<TensorDtype::kF64>(slice, out, stride);
    case TensorDtype::kF32:
      return Read<TensorDtype::kF32>(slice, out, stride);
    case TensorDtype::kBF16:
      return Read<TensorDtype::kBF16>(slice, out, stride);
    case TensorDtype::kF16:
      return Read<TensorDtype::kF16>(slice, out, stride);
  }
}

template void ReadWeight<float>(const checkpoint::WeightSlice&, float*, int64_t);
template void ReadWeight<double>(const checkpoint::WeightSlice&, double*, int64_t);

}  // namespace hopscope::engine

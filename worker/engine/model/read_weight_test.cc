#include "worker/engine/model/read_weight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace hopscope::engine {
namespace {

using checkpoint::TensorDtype;
using checkpoint::WeightSlice;
using testing::ElementsAre;

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T) + 1, '\0');
  // One byte off: files are not aligned.
  std::memcpy(bytes.data() + 1, values.data(), values.size() * sizeof(T));
  return bytes;
}

WeightSlice Slice(const std::string& bytes, TensorDtype dtype, std::vector<int64_t> shape) {
  WeightSlice slice;
  slice.tensor = {.dtype = dtype, .shape = shape, .bytes = absl::string_view(bytes).substr(1)};
  slice.rows = shape[0];
  slice.columns = shape.size() > 1 ? shape[1] : 1;
  return slice;
}

TEST(ReadWeightTest, CopiesRowsAtAStride) {
  const std::string bytes = Bytes<float>({1, 2, 3, 4});
  std::vector<double> out(6, -1);
  ReadWeight(Slice(bytes, TensorDtype::kF32, {2, 2}), out.data(), 3);
  EXPECT_THAT(out, ElementsAre(1, 2, -1, 3, 4, -1));
}

TEST(ReadWeightTest, ReadsVectors) {
  const std::string bytes = Bytes<double>({1.5, -2});
  std::vector<float> out(2);
  ReadWeight(Slice(bytes, TensorDtype::kF64, {2}), out.data(), 1);
  EXPECT_THAT(out, ElementsAre(1.5f, -2.0f));
}

TEST(ReadWeightTest, TakesBlocksOfRows) {
  // Query, key and value rows in turn, two rows each: the key's.
  const std::string bytes = Bytes<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  WeightSlice slice = Slice(bytes, TensorDtype::kF32, {12, 1});
  slice.rows = 4;
  slice.first = 2;
  slice.block = 2;
  slice.stride = 6;
  std::vector<float> out(4);
  ReadWeight(slice, out.data(), 1);
  EXPECT_THAT(out, ElementsAre(2, 3, 8, 9));
}

TEST(ReadWeightTest, TakesColumnsOfATransposedMatrix) {
  // Stored [in 2, out 3]; the last two outputs.
  const std::string bytes = Bytes<float>({1, 2, 3, 4, 5, 6});
  WeightSlice slice = Slice(bytes, TensorDtype::kF32, {2, 3});
  slice.rows = 2;
  slice.columns = 2;
  slice.first = 1;
  slice.transposed = true;
  std::vector<float> out(4);
  ReadWeight(slice, out.data(), 2);
  EXPECT_THAT(out, ElementsAre(2, 5, 3, 6));
}

TEST(ReadWeightTest, WidensHalfPrecisionExactly) {
  const std::string bfloat = Bytes<uint16_t>({0x3f80, 0xc049, 0x0001});
  std::vector<double> out(3);
  ReadWeight(Slice(bfloat, TensorDtype::kBF16, {3}), out.data(), 1);
  EXPECT_THAT(out, ElementsAre(1, -3.140625, std::ldexp(1.0, -133)));

  // 1, -2, the largest and the smallest number, infinity, and NaN.
  const std::string half = Bytes<uint16_t>({0x3c00, 0xc000, 0x7bff, 0x8001, 0x7c00, 0x7e00});
  out.resize(6);
  ReadWeight(Slice(half, TensorDtype::kF16, {6}), out.data(), 1);
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[1], -2);
  EXPECT_EQ(out[2], 65504);
  EXPECT_EQ(out[3], -std::ldexp(1.0, -24));
  EXPECT_EQ(out[4], std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(out[5]));
}

}  // namespace
}  // namespace hopscope::engine

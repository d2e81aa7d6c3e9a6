#include "worker/engine/model/weight_product.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "worker/engine/model/torch_runtime.h"

namespace hopscope::engine {
namespace {

at::Tensor Random(int64_t rows, int64_t columns, at::ScalarType type, uint32_t seed) {
  std::mt19937 random(seed);
  at::Tensor matrix = at::empty({rows, columns}, at::kDouble);
  double* const values = matrix.mutable_data_ptr<double>();
  for (int64_t i = 0; i < matrix.numel(); ++i) {
    values[i] = static_cast<double>(random()) / 2147483648.0 - 1;
  }
  return matrix.to(type);
}

double LargestDifference(const at::Tensor& a, const at::Tensor& b) {
  return a.to(at::kDouble).sub(b.to(at::kDouble)).abs().max().item<double>();
}

class WeightProductTest : public testing::TestWithParam<at::ScalarType> {
 protected:
  WeightProductTest() {
    PinBlasCodePath();
    UseOneTorchThread();
  }
};

TEST_P(WeightProductTest, IsTheExactProductRoundedOnce) {
  const c10::InferenceMode no_gradients;
  const at::Tensor rows = Random(21, 50, GetParam(), 1);
  const at::Tensor matrix = Random(13, 50, GetParam(), 2);
  const at::Tensor exact = rows.to(at::kDouble).mm(matrix.to(at::kDouble).t());
  const double unit = GetParam() == at::kDouble     ? 0x1p-52
                      : GetParam() == at::kFloat    ? 0x1p-23
                      : GetParam() == at::kBFloat16 ? 0x1p-8
                                                    : 0x1p-11;
  const at::Tensor out = at::empty({21, 13}, rows.options());
  MultiplyByWeights(rows, matrix, out);
  EXPECT_LE(LargestDifference(out, exact), 16 * unit);
  const at::Tensor sum = Random(21, 13, GetParam(), 3);
  const at::Tensor expected = exact.add(sum.to(at::kDouble));
  AddMultipliedByWeights(rows, matrix, sum);
  EXPECT_LE(LargestDifference(sum, expected), 16 * unit);
  if (unit > 0x1p-20) {
    const at::Tensor wide = at::empty({21, 13}, at::kFloat);
    MultiplyByWeights(rows, matrix, wide);
    EXPECT_LE(LargestDifference(wide, exact), 1e-5);
  }
}

// Rows may lie apart, as those of the last tokens do, and so may columns' owners.
TEST_P(WeightProductTest, TakesRowsThatLieApart) {
  const c10::InferenceMode no_gradients;
  const at::Tensor all = Random(30, 60, GetParam(), 4);
  const at::Tensor rows = all.unflatten(0, {6, 5}).select(1, 4).narrow(1, 10, 32);
  const at::Tensor matrix = Random(9, 40, GetParam(), 5).narrow(1, 4, 32);
  const at::Tensor buffer = at::zeros({12, 20}, all.options());
  MultiplyByWeights(rows, matrix, buffer.unflatten(0, {6, 2}).select(1, 1).narrow(1, 3, 9));
  const at::Tensor dense = at::empty({6, 9}, all.options());
  MultiplyByWeights(rows.contiguous(), matrix.contiguous(), dense);
  EXPECT_EQ(LargestDifference(buffer.unflatten(0, {6, 2}).select(1, 1).narrow(1, 3, 9), dense), 0);
  EXPECT_EQ(LargestDifference(buffer.unflatten(0, {6, 2}).select(1, 0),
                              at::zeros({6, 20}, all.options())),
            0);
}

// Of the widths of small and large models.
TEST_P(WeightProductTest, ARowDoesNotDependOnHowManyThereAre) {
  const c10::InferenceMode no_gradients;
  for (const auto& [inputs, outputs] :
       {std::pair{128, 640}, std::pair{640, 128}, std::pair{3072, 64}}) {
    const at::Tensor matrix = Random(outputs, inputs, GetParam(), 6);
    const at::Tensor rows = Random(300, inputs, GetParam(), 7);
    const at::Tensor sums = Random(300, outputs, GetParam(), 8);
    const at::Tensor all = at::empty({300, outputs}, rows.options());
    MultiplyByWeights(rows, matrix, all);
    const at::Tensor all_sums = sums.clone();
    AddMultipliedByWeights(rows, matrix, all_sums);
    for (const int64_t count : {1, 7, 17, 272}) {
      for (const int64_t first : {int64_t{0}, int64_t{13}, 300 - count}) {
        const at::Tensor some = at::empty({count, outputs}, rows.options());
        MultiplyByWeights(rows.narrow(0, first, count), matrix, some);
        EXPECT_EQ(LargestDifference(some, all.narrow(0, first, count)), 0)
            << inputs << " " << outputs << ": " << count << " from " << first;
        const at::Tensor some_sums = sums.narrow(0, first, count).clone();
        AddMultipliedByWeights(rows.narrow(0, first, count), matrix, some_sums);
        EXPECT_EQ(LargestDifference(some_sums, all_sums.narrow(0, first, count)), 0)
            << inputs << " " << outputs << ": " << count << " from " << first;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, WeightProductTest,
                         testing::Values(at::kFloat, at::kDouble, at::kBFloat16, at::kHalf),
                         [](const auto& info) { return std::string(c10::toString(info.param)); });

}  // namespace
}  // namespace hopscope::engine

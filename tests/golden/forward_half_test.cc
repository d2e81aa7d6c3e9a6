// bfloat16 and float16: how far from float64 every model of this folder comes out, and that nothing
// overflows on the way to long sequences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/testing/write_checkpoint.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/naive_model.h"
#include "tests/golden/random_checkpoint.h"
#include "worker/engine/model/capture.h"
#include "worker/engine/model/forward_pass.h"

namespace hopscope::golden {
namespace {

using checkpoint::WeightRole;
using engine::ForwardPass;
using engine::Model;

std::string NameOf(v1::Dtype dtype) {
  return dtype == v1::DTYPE_BFLOAT16  ? "bfloat16"
         : dtype == v1::DTYPE_FLOAT16 ? "float16"
         : dtype == v1::DTYPE_FLOAT64 ? "float64"
                                      : "float32";
}

std::vector<double> LastLogits(const Model& model, const std::vector<int32_t>& ids) {
  ForwardPass pass;
  const auto logits = pass.Run(
      model, {.sequences = 1, .tokens = static_cast<int64_t>(ids.size()), .ids = ids.data()});
  EXPECT_TRUE(logits.ok()) << logits.status();
  if (!logits.ok()) return {};
  std::vector<double> values(logits->columns);
  engine::CopyRows(*logits, values.data(), logits->columns);
  return values;
}

std::vector<int32_t> RandomIds(int64_t count, int64_t vocab) {
  std::mt19937 random(3);
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % vocab);
  return ids;
}

double Largest(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

// Units of 2^-8 (bfloat16) or 2^-11 (float16), what rounding a number of size 1 may cost. A logit's
// error is measured in the largest logit, a residual's in the largest of the stream, and weights of
// attention as they are. gpt_neo has no 1/sqrt(d_head), so its attention is sharp and amplifies
// rounding.
struct Tolerance {
  double logits;
  double residual;
  double attention;
};

Tolerance ToleranceOf(const std::string& family) {
  if (family == "gpt_neo") return {20, 20, 80};
  return {10, 8, 16};
}

class HalfTest : public testing::TestWithParam<std::tuple<std::string, v1::Dtype>> {};

TEST_P(HalfTest, IsAsFarFromFloat64AsItsRoundingSays) {
  const auto& [name, dtype] = GetParam();
  const nlohmann::json index = ReadJson(GoldenPath("models/index.json"));
  const std::string expected_name = index.at(name).at("expected");
  const auto model = LoadModel(GoldenPath("models/" + name), dtype);
  const Tensors expected(GoldenPath("expected/" + expected_name + "/expected.safetensors"));
  const double unit = dtype == v1::DTYPE_BFLOAT16 ? 1.0 / 256 : 1.0 / 2048;
  Tolerance worst{};
  for (const int length : {5, 17, 33}) {
    const std::vector<int64_t> tokens = expected.Integers(absl::StrCat("ids.", length));
    const std::vector<int32_t> ids(tokens.begin(), tokens.end());
    engine::Capture<double> capture(&model->architecture(), length, true, true);
    ForwardPass pass;
    const auto logits = pass.Run(*model, {.sequences = 1,
                                          .tokens = length,
                                          .ids = ids.data(),
                                          .all_logits = true,
                                          .observer = &capture});
    ASSERT_TRUE(logits.ok()) << logits.status();
    EXPECT_FALSE(logits->float64);
    std::vector<double> got(logits->rows * logits->columns);
    engine::CopyRows(*logits, got.data(), logits->columns);
    const auto off = [&](const std::vector<double>& values, const char* what, bool relative) {
      const std::vector<double> exact = expected.Doubles(absl::StrCat(what, ".", length));
      return MaxDifference(values, exact) / (relative ? Largest(exact) : 1) / unit;
    };
    worst.logits = std::max(worst.logits, off(got, "logits", true));
    worst.residual = std::max(worst.residual, off(capture.residual(), "hidden", true));
    worst.attention = std::max(worst.attention, off(capture.attention(), "attn", false));
  }
  std::printf("%-16s %-9s logits %6.2f  residual %6.2f  attention %6.2f units\n", name.c_str(),
              NameOf(dtype).c_str(), worst.logits, worst.residual, worst.attention);
  const Tolerance tolerance = ToleranceOf(model->architecture().family);
  EXPECT_LE(worst.logits, tolerance.logits);
  EXPECT_LE(worst.residual, tolerance.residual);
  EXPECT_LE(worst.attention, tolerance.attention);
  // It did compute in that format: float32 would be far closer.
  EXPECT_GT(worst.residual, 0.1);
}

std::vector<std::string> ModelNames() {
  std::vector<std::string> names;
  const nlohmann::json index = ReadJson(GoldenPath("models/index.json"));
  for (const auto& item : index.items()) names.push_back(item.key());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, HalfTest,
                         testing::Combine(testing::ValuesIn(ModelNames()),
                                          testing::Values(v1::DTYPE_BFLOAT16, v1::DTYPE_FLOAT16)),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param), "_",
                                               NameOf(std::get<1>(info.param)));
                         });

class LengthSweepTest : public testing::TestWithParam<v1::Dtype> {};

TEST_P(LengthSweepTest, LogitsStayFiniteUpToFiveThousandTokens) {
  for (const char* name : {"gptj_partial", "bloom_h4", "llama31"}) {
    const auto model = LoadModel(GoldenPath(std::string("models/") + name), GetParam());
    const auto exact = LoadModel(GoldenPath(std::string("models/") + name), v1::DTYPE_FLOAT32);
    for (const int64_t tokens : {1, 2, 127, 128, 129, 512, 1024, 2047, 2048, 2049, 5000}) {
      const auto ids = RandomIds(tokens, model->architecture().vocab_size);
      const auto logits = LastLogits(*model, ids);
      for (const double logit : logits) ASSERT_TRUE(std::isfinite(logit)) << name << " " << tokens;
      if (tokens == 2048 && model->half()) {
        const auto expected = LastLogits(*exact, ids);
        EXPECT_LE(MaxDifference(logits, expected), 0.1 * Largest(expected)) << name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, LengthSweepTest,
                         testing::Values(v1::DTYPE_FLOAT64, v1::DTYPE_FLOAT32, v1::DTYPE_BFLOAT16,
                                         v1::DTYPE_FLOAT16),
                         [](const auto& info) { return NameOf(info.param); });

// Queries and keys fit float16, their inner products do not: 65,504 is its largest number.
TEST(OverflowTest, LogitsOfAttentionMayBeLargerThanFloat16Holds) {
  const checkpoint::testing::TempFolder folder;
  const nlohmann::json config = {{"model_type", "hopscope"},
                                 {"vocab_size", 31},
                                 {"layers", 2},
                                 {"heads", 2},
                                 {"d_model", 32},
                                 {"positions", {{"type", "none"}}},
                                 {"norm", "layer"},
                                 {"attention_scale", 1}};
  const std::string path = WriteRandomCheckpoint(folder, "model", config, 5, [](WeightRole role) {
    return role == WeightRole::kQuery || role == WeightRole::kKey ? 200.0 : 1.0;
  });
  const auto ids = RandomIds(40, 31);
  const auto expected = NaiveModel(path).Logits(ids);
  for (const v1::Dtype dtype : {v1::DTYPE_FLOAT16, v1::DTYPE_BFLOAT16}) {
    const auto model = LoadModel(path, dtype);
    const auto logits = LastLogits(*model, ids);
    ASSERT_EQ(logits.size(), expected.size());
    for (const double logit : logits) EXPECT_TRUE(std::isfinite(logit));
    EXPECT_LE(MaxDifference(logits, expected), 0.2 * Largest(expected)) << NameOf(dtype);
  }
}

// Two calls, and calls of the same object with models of different formats, agree bit for bit.
TEST(HalfFormatsTest, OnePassRunsModelsOfEveryFormat) {
  const std::string path = GoldenPath("models/llama_gqa");
  const auto half = LoadModel(path, v1::DTYPE_BFLOAT16);
  const auto full = LoadModel(path, v1::DTYPE_FLOAT32);
  EXPECT_LT(half->weight_bytes(), 0.6 * static_cast<double>(full->weight_bytes()));
  const auto ids = RandomIds(33, half->architecture().vocab_size);
  ForwardPass pass;
  const auto run = [&](const Model& model) {
    const auto logits = pass.Run(model, {.sequences = 1, .tokens = 33, .ids = ids.data()});
    EXPECT_TRUE(logits.ok()) << logits.status();
    std::vector<double> values(logits->columns);
    engine::CopyRows(*logits, values.data(), logits->columns);
    return values;
  };
  const auto first = run(*half);
  const auto between = run(*full);
  EXPECT_EQ(run(*half), first);
  EXPECT_EQ(run(*full), between);
  EXPECT_NE(first, between);
}

}  // namespace
}  // namespace hopscope::golden

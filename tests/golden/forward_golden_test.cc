// The forward pass against Hugging Face's, for every model of this folder: logits, residual stream
// and attention weights, in float64 and float32, by the CPU's own loops and by LibTorch's general
// operators.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/golden/golden_data.h"
#include "worker/engine/model/capture.h"
#include "worker/engine/model/forward_pass.h"

namespace hopscope::golden {
namespace {

using engine::Capture;
using engine::ForwardPass;
using engine::Model;

struct Outputs {
  std::vector<double> logits;
  std::vector<double> residual;
  std::vector<double> attention;
};

std::vector<int32_t> ToIds(const std::vector<int64_t>& ids) { return {ids.begin(), ids.end()}; }

Outputs RunAll(const Model& model, const std::vector<int64_t>& tokens, bool general) {
  const std::vector<int32_t> ids = ToIds(tokens);
  const int64_t count = static_cast<int64_t>(ids.size());
  Capture<double> capture(&model.architecture(), count, /*residual=*/true, /*attention=*/true);
  ForwardPass pass({.general_operators = general});
  const auto logits = pass.Run(model, {.sequences = 1,
                                       .tokens = count,
                                       .ids = ids.data(),
                                       .all_logits = true,
                                       .observer = &capture});
  EXPECT_TRUE(logits.ok()) << logits.status();
  if (!logits.ok()) return {};
  Outputs outputs{.logits = std::vector<double>(logits->rows * logits->columns),
                  .residual = capture.residual(),
                  .attention = capture.attention()};
  engine::CopyRows(*logits, outputs.logits.data(), logits->columns);
  return outputs;
}

struct Tolerance {
  double logits;
  double residual;
  double attention;
};

// float64: README.md's. float32: 4 to 7 times what Hugging Face's own float32 is off by. GPT-Neo
// has no 1/sqrt(d_head), so its attention is sharp and amplifies rounding.
Tolerance ToleranceOf(const Model& model) {
  if (model.float64()) return {1e-10, 1e-10, 1e-11};
  if (model.architecture().family == "gpt_neo") return {5e-4, 5e-4, 1e-4};
  return {3e-4, 3e-4, 2e-5};
}

using Case = std::tuple<std::string, v1::Dtype, bool>;

class ForwardGoldenTest : public testing::TestWithParam<Case> {};

TEST_P(ForwardGoldenTest, LogitsResidualAndAttentionAgree) {
  const auto& [name, dtype, general] = GetParam();
  const nlohmann::json index = ReadJson(GoldenPath("models/index.json"));
  const std::string expected_name = index.at(name).at("expected");
  const auto model = LoadModel(GoldenPath("models/" + name), dtype);
  const Tensors expected(GoldenPath("expected/" + expected_name + "/expected.safetensors"));
  const Tolerance tolerance = ToleranceOf(*model);
  for (const int length : {5, 17, 33}) {
    const Outputs outputs =
        RunAll(*model, expected.Integers(absl::StrCat("ids.", length)), general);
    EXPECT_LE(MaxDifference(outputs.logits, expected.Doubles(absl::StrCat("logits.", length))),
              tolerance.logits)
        << length;
    EXPECT_LE(MaxDifference(outputs.residual, expected.Doubles(absl::StrCat("hidden.", length))),
              tolerance.residual)
        << length;
    EXPECT_LE(MaxDifference(outputs.attention, expected.Doubles(absl::StrCat("attn.", length))),
              tolerance.attention)
        << length;
  }
}

std::vector<std::string> ModelNames() {
  std::vector<std::string> names;
  const nlohmann::json index = ReadJson(GoldenPath("models/index.json"));
  for (const auto& item : index.items()) {
    names.push_back(item.key());
  }
  return names;
}

std::string CaseName(const testing::TestParamInfo<Case>& info) {
  return absl::StrCat(std::get<0>(info.param),
                      std::get<1>(info.param) == v1::DTYPE_FLOAT64 ? "_float64" : "_float32",
                      std::get<2>(info.param) ? "_general" : "");
}

INSTANTIATE_TEST_SUITE_P(Models, ForwardGoldenTest,
                         testing::Combine(testing::ValuesIn(ModelNames()),
                                          testing::Values(v1::DTYPE_FLOAT64, v1::DTYPE_FLOAT32),
                                          testing::Bool()),
                         CaseName);

// A comparison that cannot fail proves nothing: with the planes paired the other way it must.
TEST(ForwardGoldenSensitivityTest, WrongRotaryPairingIsSeen) {
  const std::string path = GoldenPath("models/gptj_1head");
  const auto model = LoadModel(path, v1::DTYPE_FLOAT64);
  auto& wrong = const_cast<checkpoint::Architecture&>(model->architecture());
  ASSERT_EQ(wrong.position, checkpoint::PositionKind::kRotaryInterleaved);
  wrong.position = checkpoint::PositionKind::kRotaryHalfSplit;
  const Tensors expected(GoldenPath("expected/gptj_1head/expected.safetensors"));
  for (const bool general : {false, true}) {
    const Outputs outputs = RunAll(*model, expected.Integers("ids.17"), general);
    EXPECT_GT(MaxDifference(outputs.logits, expected.Doubles("logits.17")), 1e-2);
    EXPECT_GT(MaxDifference(outputs.attention, expected.Doubles("attn.17")), 1e-2);
  }
}

class TrainedGoldenTest : public testing::TestWithParam<std::tuple<std::string, v1::Dtype>> {};

TEST_P(TrainedGoldenTest, LogitsAndAttentionOfTheLastTokenAgree) {
  const auto& [task, dtype] = GetParam();
  const auto model = LoadModel(CheckpointPath(task + "/step-06750"), dtype);
  const Tensors expected(GoldenPath("expected/trained_" + task + "/expected.safetensors"));
  const std::vector<int32_t> ids = ToIds(expected.Integers("ids"));
  const int64_t sequences = expected.Shape("ids")[0];
  const int64_t tokens = expected.Shape("ids")[1];

  // The last row of each layer's attention, as attn_last [sequences, layers, heads, tokens].
  class LastRows : public engine::ForwardObserver {
   public:
    LastRows(int64_t layers, int64_t sequences, int64_t tokens)
        : layers_(layers), tokens_(tokens), rows(sequences * layers * tokens) {}

    Interest interest() const override { return {.attention = true}; }

    void OnAttention(const engine::AttentionWeights& attention) override {
      engine::MatrixView last = attention.weights;
      last.data = last.float64 ? static_cast<const void*>(last.Row<double>(last.rows - 1))
                               : static_cast<const void*>(last.Row<float>(last.rows - 1));
      last.rows = 1;
      engine::CopyRows(
          last, rows.data() + (attention.sequence * layers_ + attention.layer) * tokens_, tokens_);
    }

   private:
    const int64_t layers_;
    const int64_t tokens_;

   public:
    std::vector<double> rows;
  };

  LastRows last(model->architecture().layers, sequences, tokens);
  ForwardPass pass;
  const auto logits = pass.Run(
      *model, {.sequences = sequences, .tokens = tokens, .ids = ids.data(), .observer = &last});
  ASSERT_TRUE(logits.ok()) << logits.status();
  ASSERT_EQ(logits->rows, sequences);
  std::vector<double> got(logits->rows * logits->columns);
  engine::CopyRows(*logits, got.data(), logits->columns);
  const bool float64 = dtype == v1::DTYPE_FLOAT64;
  const double logit_difference = MaxDifference(got, expected.Doubles("logits_last"));
  const double attention_difference = MaxDifference(last.rows, expected.Doubles("attn_last"));
  RecordProperty("logits", absl::StrCat(logit_difference));
  RecordProperty("attention", absl::StrCat(attention_difference));
  std::printf("%s: logits off by %.2g, attention by %.2g\n", task.c_str(), logit_difference,
              attention_difference);
  EXPECT_LE(logit_difference, float64 ? 1e-9 : 3e-4);
  EXPECT_LE(attention_difference, float64 ? 1e-9 : 2e-5);

  const std::vector<int64_t> first(ids.begin(), ids.begin() + tokens);
  const Outputs outputs = RunAll(*model, first, /*general=*/false);
  EXPECT_LE(MaxDifference(outputs.residual, expected.Doubles("hidden_seq0")),
            float64 ? 1e-9 : 3e-4);
  EXPECT_LE(MaxDifference(outputs.attention, expected.Doubles("attn_seq0")), float64 ? 1e-9 : 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Tasks, TrainedGoldenTest,
                         testing::Combine(testing::Values("number", "letter"),
                                          testing::Values(v1::DTYPE_FLOAT64, v1::DTYPE_FLOAT32)),
                         [](const auto& info) {
                           return std::get<0>(info.param) +
                                  (std::get<1>(info.param) == v1::DTYPE_FLOAT64 ? "_float64"
                                                                                : "_float32");
                         });

}  // namespace
}  // namespace hopscope::golden

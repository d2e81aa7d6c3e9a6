// Every switch of the family "hopscope" against the plain implementation, in all formats and by
// both sets of operators.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "common/checkpoint/testing/write_checkpoint.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/naive_model.h"
#include "tests/golden/random_checkpoint.h"
#include "worker/engine/model/capture.h"
#include "worker/engine/model/forward_pass.h"

namespace hopscope::golden {
namespace {

using checkpoint::WeightRole;
using checkpoint::testing::TempFolder;
using engine::ForwardPass;
using nlohmann::json;

constexpr int64_t kTokens = 21;

// With everything on; each switch changes some of it.
json Whole() {
  return {{"model_type", "hopscope"},
          {"vocab_size", 23},
          {"layers", 3},
          {"heads", 4},
          {"kv_heads", 2},
          {"d_model", 20},
          {"d_head", 6},
          {"positions", {{"type", "rotary_interleaved"}, {"angles", {1.0, 0.3}}}},
          {"norm", "layer"},
          {"residual", true},
          {"mlp", {{"width", 30}, {"activation", "gelu_new"}}},
          {"biases", {"query", "key", "value", "attention_out", "mlp_up", "mlp_down", "head"}},
          {"attention_scale", {0.7, 1.5, 0.4}},
          {"tied_head", false}};
}

struct Switch {
  const char* name;
  json change;  // merged into the whole; null takes a key away
};

std::vector<Switch> Switches() {
  std::vector<Switch> switches = {
      {"whole", json::object()},
      {"no_norm", {{"norm", "none"}}},
      {"no_residual", {{"residual", false}}},
      {"no_mlp", {{"mlp", nullptr}, {"biases", {"query", "value", "attention_out"}}}},
      {"no_biases", {{"biases", nullptr}}},
      {"some_biases", {{"biases", {"key", "mlp_down"}}}},
      {"tied_head", {{"tied_head", true}}},
      {"plain_scale", {{"attention_scale", nullptr}}},
      {"one_scale", {{"attention_scale", 2.5}}},
      {"no_positions", {{"positions", {{"type", "none"}, {"angles", nullptr}}}}},
      {"learned", {{"positions", {{"type", "learned"}, {"angles", nullptr}, {"count", 40}}}}},
      {"alibi",
       {{"positions", {{"type", "alibi"}, {"angles", nullptr}, {"slopes", {0.5, 0, 0.1, -0.2}}}}}},
      {"half_split", {{"positions", {{"type", "rotary_half_split"}, {"angles", {0.8, 0.1, 2}}}}}},
      {"every_head_its_keys", {{"kv_heads", nullptr}}},
      {"relu", {{"mlp", {{"activation", "relu"}}}}},
      {"silu", {{"mlp", {{"activation", "silu"}}}}},
      {"gelu", {{"mlp", {{"activation", "gelu"}}}}},
      {"attention_alone",
       {{"norm", "none"}, {"residual", false}, {"mlp", nullptr}, {"biases", nullptr}}},
      {"attention_and_residual", {{"norm", "none"}, {"mlp", nullptr}, {"biases", nullptr}}},
      {"nothing_but_branches", {{"norm", "none"}, {"residual", false}}},
      {"odd_head",
       {{"heads", 1},
        {"kv_heads", nullptr},
        {"d_head", 7},
        {"positions", {{"type", "rotary_interleaved"}, {"angles", {0.8}}}}}},
  };
  return switches;
}

class SwitchTest : public testing::TestWithParam<Switch> {
 protected:
  SwitchTest() {
    json config = Whole();
    config.merge_patch(GetParam().change);
    path_ = WriteRandomCheckpoint(folder_, "model", config, 7, [](WeightRole role) {
      return role == WeightRole::kTokenEmbedding || role == WeightRole::kNorm1Gain ? 1 : 0.5;
    });
    std::mt19937 random(11);
    for (int64_t i = 0; i < kTokens; ++i) ids_.push_back(static_cast<int32_t>(random() % 23));
    const NaiveModel naive(path_);
    NaiveModel::Matrix rows = naive.Embed(ids_);
    const auto keep = [&] {
      for (const auto& row : rows) residual_.insert(residual_.end(), row.begin(), row.end());
    };
    for (int64_t layer = 0; layer < naive.architecture().layers; ++layer) {
      keep();
      const auto attention = naive.LastAttention(layer, rows);
      for (const auto& row : attention) attention_.insert(attention_.end(), row.begin(), row.end());
      rows = naive.Layer(layer, rows);
    }
    keep();
    for (const auto& row : rows) {
      const auto logits = naive.Head(row);
      logits_.insert(logits_.end(), logits.begin(), logits.end());
    }
  }

  // Logits and residual stream in units of their largest number, which without norms may be any.
  struct Off {
    double logits = 0;
    double residual = 0;
    double attention = 0;
  };

  static double Largest(const std::vector<double>& values) {
    double largest = 0;
    for (const double value : values) largest = std::max(largest, std::abs(value));
    return largest;
  }

  Off Run(v1::Dtype dtype, bool general) {
    const auto model = LoadModel(path_, dtype);
    const auto& a = model->architecture();
    engine::Capture<double> capture(&a, kTokens, /*residual=*/true, /*attention=*/true);
    ForwardPass pass({.general_operators = general});
    const auto logits = pass.Run(*model, {.sequences = 1,
                                          .tokens = kTokens,
                                          .ids = ids_.data(),
                                          .all_logits = true,
                                          .observer = &capture});
    EXPECT_TRUE(logits.ok()) << logits.status();
    if (!logits.ok()) return {INFINITY, INFINITY, INFINITY};
    std::vector<double> got(logits->rows * logits->columns);
    engine::CopyRows(*logits, got.data(), logits->columns);
    std::vector<double> last;
    for (int64_t matrix = 0; matrix < a.layers * a.heads; ++matrix) {
      const auto row = capture.attention().begin() + (matrix * kTokens + kTokens - 1) * kTokens;
      last.insert(last.end(), row, row + kTokens);
    }
    // The last layer's queries may be the last token's alone.
    const auto alone = pass.Run(*model, {.sequences = 1, .tokens = kTokens, .ids = ids_.data()});
    EXPECT_TRUE(alone.ok()) << alone.status();
    std::vector<double> last_logits(alone->columns);
    engine::CopyRows(*alone, last_logits.data(), alone->columns);
    const std::vector<double> expected(logits_.end() - alone->columns, logits_.end());
    return {std::max(MaxDifference(got, logits_), MaxDifference(last_logits, expected)) /
                Largest(logits_),
            MaxDifference(capture.residual(), residual_) / Largest(residual_),
            MaxDifference(last, attention_)};
  }

  const TempFolder folder_;
  std::string path_;
  std::vector<int32_t> ids_;
  std::vector<double> residual_;   // [layers + 1, tokens, d_model]
  std::vector<double> attention_;  // [layers, heads, tokens]: the last query's
  std::vector<double> logits_;     // [tokens, vocab]
};

TEST_P(SwitchTest, AgreesWithThePlainImplementation) {
  for (const bool general : {false, true}) {
    const Off float64 = Run(v1::DTYPE_FLOAT64, general);
    EXPECT_LE(float64.logits, 1e-12);
    EXPECT_LE(float64.residual, 1e-12);
    EXPECT_LE(float64.attention, 1e-12);
    const Off float32 = Run(v1::DTYPE_FLOAT32, general);
    EXPECT_LE(float32.logits, 2e-5);
    EXPECT_LE(float32.residual, 2e-5);
    EXPECT_LE(float32.attention, 5e-5);
  }
}

// The switches that a plain implementation would not miss either: each is another model.
TEST(SwitchesTest, DifferFromTheWhole) {
  const TempFolder folder;
  std::vector<int32_t> ids(kTokens);
  for (int64_t i = 0; i < kTokens; ++i) ids[i] = static_cast<int32_t>(i * 5 % 23);
  std::vector<std::vector<double>> all;
  for (const Switch& one : Switches()) {
    json config = Whole();
    config.merge_patch(one.change);
    const std::string path =
        WriteRandomCheckpoint(folder, one.name, config, 7, [](WeightRole) { return 0.5; });
    const auto model = LoadModel(path, v1::DTYPE_FLOAT64);
    ForwardPass pass;
    const auto logits = pass.Run(*model, {.sequences = 1, .tokens = kTokens, .ids = ids.data()});
    ASSERT_TRUE(logits.ok()) << logits.status();
    std::vector<double> values(logits->columns);
    engine::CopyRows(*logits, values.data(), logits->columns);
    for (const auto& other : all) EXPECT_GT(MaxDifference(values, other), 1e-6) << one.name;
    all.push_back(std::move(values));
  }
}

INSTANTIATE_TEST_SUITE_P(Switches, SwitchTest, testing::ValuesIn(Switches()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hopscope::golden

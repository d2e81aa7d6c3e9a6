// Positional and symbolic scores against those computed beside Hugging Face's forward pass, and
// against a literal re-run of layers with their rows swapped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/naive_model.h"
#include "worker/engine/compute_pool.h"
#include "worker/engine/evaluation.h"
#include "worker/engine/scorers/registry.h"
#include "worker/engine/sequence_source.h"

namespace hopscope::golden {
namespace {

using engine::ComputePool;
using engine::Model;
using engine::Scorer;
using engine::Sequence;

const std::vector<double>& Taus() {
  static const auto* const taus = new std::vector<double>{1e-4, 0.05, 1.0};
  return *taus;
}

// Tables of scorer positional_symbolic over some sequences: metric * 3 + tau.
std::unique_ptr<Scorer> Score(const Model& model, const std::vector<Sequence>& sequences,
                              engine::ItemFailures* failures) {
  v1::ScorerSpec spec;
  spec.set_name("positional_symbolic");
  auto* list = (*spec.mutable_params()->mutable_fields())["taus"].mutable_list_value();
  for (const double tau : Taus()) list->add_values()->set_number_value(tau);
  auto scorer = engine::MakeScorer("scorer", spec, model.architecture(),
                                   static_cast<int64_t>(sequences.size()), failures);
  EXPECT_TRUE(scorer.ok()) << scorer.status();
  const engine::ListSource source(sequences);
  ComputePool pool(1);
  const absl::Status status = engine::Evaluate(
      {.model = &model, .source = &source, .scorers = {scorer->get()}}, &pool, nullptr);
  EXPECT_TRUE(status.ok()) << status;
  return *std::move(scorer);
}

Sequence ToSequence(const std::vector<int64_t>& ids) {
  Sequence sequence;
  sequence.tokens = {ids.begin(), ids.end()};
  sequence.label = -1;
  return sequence;
}

std::vector<std::string> ScoredModels() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(GoldenPath("expected"))) {
    if (std::filesystem::exists(entry.path() / "scores.json") &&
        std::filesystem::exists(GoldenPath("models/" + entry.path().filename().string()))) {
      names.push_back(entry.path().filename());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

class ScoresGoldenTest : public testing::TestWithParam<std::tuple<std::string, v1::Dtype>> {};

TEST_P(ScoresGoldenTest, AgreeForEveryLayerHeadAndTemperature) {
  const auto& [name, dtype] = GetParam();
  const auto model = LoadModel(GoldenPath("models/" + name), dtype);
  const Tensors inputs(GoldenPath("expected/" + name + "/expected.safetensors"));
  const nlohmann::json scores = ReadJson(GoldenPath("expected/" + name + "/scores.json"));
  ASSERT_EQ(scores.at("taus").get<std::vector<double>>(), Taus());
  double worst[3] = {};
  double worst_self = 0;
  for (const int length : {5, 17, 33}) {
    engine::ItemFailures failures(1);
    const auto scorer =
        Score(*model, {ToSequence(inputs.Integers(absl::StrCat("ids.", length)))}, &failures);
    EXPECT_FALSE(failures.failed(0)) << failures.message(0);
    const nlohmann::json& expected = scores.at("by_len").at(absl::StrCat(length));
    const int64_t heads = model->architecture().heads;
    for (int64_t layer = 0; layer < model->architecture().layers; ++layer) {
      for (int64_t head = 0; head < heads; ++head) {
        const int64_t cell = layer * heads + head;
        for (size_t t = 0; t < 3; ++t) {
          const double positional = expected.at("pos")[layer][head][t];
          const double symbolic = expected.at("sym")[layer][head][t];
          worst[t] = std::max({worst[t], std::abs(scorer->tables()[t].item(0)[cell] - positional),
                               std::abs(scorer->tables()[3 + t].item(0)[cell] - symbolic)});
        }
        worst_self = std::max(
            worst_self,
            std::abs(scorer->tables()[6].item(0)[cell] -
                     expected.at("attention").at("self_mass_last")[layer][head].get<double>()));
      }
    }
  }
  std::printf("%s: off by %.2g, %.2g, %.2g at tau 1e-4, .05, 1; self mass by %.2g\n", name.c_str(),
              worst[0], worst[1], worst[2], worst_self);
  if (model->float64()) {
    for (const double off : worst) EXPECT_LE(off, 1e-9);
    EXPECT_LE(worst_self, 1e-9);
  } else {
    const double tolerance = model->architecture().family == "gpt_neo" ? 4e-4 : 2e-5;
    EXPECT_LE(worst[0], 1e-3);
    EXPECT_LE(worst[1], tolerance);
    EXPECT_LE(worst[2], tolerance);
    EXPECT_LE(worst_self, tolerance);
  }
}

std::string DtypeName(v1::Dtype dtype) {
  return dtype == v1::DTYPE_FLOAT64 ? "float64" : "float32";
}

INSTANTIATE_TEST_SUITE_P(Models, ScoresGoldenTest,
                         testing::Combine(testing::ValuesIn(ScoredModels()),
                                          testing::Values(v1::DTYPE_FLOAT64, v1::DTYPE_FLOAT32)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" +
                                  DtypeName(std::get<1>(info.param));
                         });

class TrainedScoresTest : public testing::TestWithParam<std::tuple<std::string, v1::Dtype>> {};

TEST_P(TrainedScoresTest, AgreeForAll64Sequences) {
  const auto& [task, dtype] = GetParam();
  const auto model = LoadModel(CheckpointPath(task + "/step-06750"), dtype);
  const Tensors inputs(GoldenPath("expected/trained_" + task + "/expected.safetensors"));
  const Tensors scores(GoldenPath("expected/trained_" + task + "/scores.safetensors"));
  const std::vector<int64_t> ids = inputs.Integers("ids");
  std::vector<Sequence> sequences;
  for (size_t i = 0; i < ids.size(); i += 17) {
    sequences.push_back(ToSequence({ids.begin() + i, ids.begin() + i + 17}));
  }
  engine::ItemFailures failures(static_cast<int64_t>(sequences.size()));
  const auto scorer = Score(*model, sequences, &failures);
  const std::vector<double> positional = scores.Doubles("pos");  // [64, 12, 1, 3]
  const std::vector<double> symbolic = scores.Doubles("sym");
  const int64_t layers = model->architecture().layers;
  double worst_item[3] = {};
  double worst_mean[3] = {};
  for (size_t t = 0; t < 3; ++t) {
    for (int64_t layer = 0; layer < layers; ++layer) {
      double positional_sum = 0;
      double symbolic_sum = 0;
      for (size_t i = 0; i < sequences.size(); ++i) {
        const size_t place = (i * layers + layer) * 3 + t;
        const double p = scorer->tables()[t].item(i)[layer] - positional[place];
        const double s = scorer->tables()[3 + t].item(i)[layer] - symbolic[place];
        worst_item[t] = std::max({worst_item[t], std::abs(p), std::abs(s)});
        positional_sum += p;
        symbolic_sum += s;
      }
      const double count = static_cast<double>(sequences.size());
      worst_mean[t] = std::max(
          {worst_mean[t], std::abs(positional_sum) / count, std::abs(symbolic_sum) / count});
    }
  }
  std::printf(
      "%s %s: items off by %.2g, %.2g, %.2g, means by %.2g, %.2g, %.2g at tau 1e-4, .05, 1\n",
      task.c_str(), DtypeName(dtype).c_str(), worst_item[0], worst_item[1], worst_item[2],
      worst_mean[0], worst_mean[1], worst_mean[2]);
  for (size_t t = 0; t < 3; ++t) {
    EXPECT_LE(worst_item[t], model->float64() ? 1e-9 : 1e-3);
    EXPECT_LE(worst_mean[t], model->float64() ? 1e-9 : 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, TrainedScoresTest,
                         testing::Combine(testing::Values("number", "letter"),
                                          testing::Values(v1::DTYPE_FLOAT64, v1::DTYPE_FLOAT32)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" +
                                  DtypeName(std::get<1>(info.param));
                         });

// The scores as they are defined: the rows that enter a layer are exchanged, the layer's attention
// is computed again, and the pairs of weights are compared.
TEST(LiteralScoresTest, ClosedFormIsTheDefinition) {
  const struct {
    std::string path;
    std::string expected;
    std::string ids;
  } cases[] = {{GoldenPath("models/gptj_1head"), "gptj_1head", "ids.17"},
               {GoldenPath("models/gptj_partial"), "gptj_partial", "ids.17"},
               {CheckpointPath("number/step-06750"), "trained_number", "ids"},
               {CheckpointPath("letter/step-06750"), "trained_letter", "ids"}};
  for (const auto& test_case : cases) {
    std::vector<int64_t> ids =
        Tensors(GoldenPath("expected/" + test_case.expected + "/expected.safetensors"))
            .Integers(test_case.ids);
    ids.resize(17);
    const auto model = LoadModel(test_case.path, v1::DTYPE_FLOAT64);
    engine::ItemFailures failures(1);
    const Sequence sequence = ToSequence(ids);
    const auto scorer = Score(*model, {sequence}, &failures);

    const NaiveModel naive(test_case.path);
    const int64_t heads = naive.architecture().heads;
    NaiveModel::Matrix rows = naive.Embed(sequence.tokens);
    double worst = 0;
    for (int64_t layer = 0; layer < naive.architecture().layers; ++layer) {
      const NaiveModel::Matrix before = naive.LastAttention(layer, rows);
      struct Swap {
        size_t i, j;
        NaiveModel::Matrix after;
      };
      std::vector<Swap> swaps;
      for (size_t i = 0; i + 1 < rows.size(); ++i) {
        for (size_t j = i + 1; j + 1 < rows.size(); ++j) {
          NaiveModel::Matrix swapped = rows;
          std::swap(swapped[i], swapped[j]);
          swaps.push_back({i, j, naive.LastAttention(layer, swapped)});
        }
      }
      for (int64_t head = 0; head < heads; ++head) {
        const std::vector<double>& d = before[head];
        for (size_t t = 0; t < Taus().size(); ++t) {
          double largest = 0;
          for (const Swap& swap : swaps)
            largest = std::max(largest, std::abs(d[swap.i] - d[swap.j]));
          double weight = 0, positional = 0, symbolic = 0;
          for (const auto& [i, j, after_heads] : swaps) {
            const std::vector<double>& after = after_heads[head];
            const double alpha = std::exp((std::abs(d[i] - d[j]) - largest) / Taus()[t]);
            const double norms = std::hypot(after[i], after[j]) * std::hypot(d[i], d[j]);
            weight += alpha;
            positional += alpha * (after[i] * d[i] + after[j] * d[j]) / norms;
            symbolic += alpha * (after[i] * d[j] + after[j] * d[i]) / norms;
          }
          const int64_t cell = layer * heads + head;
          worst =
              std::max({worst, std::abs(scorer->tables()[t].item(0)[cell] - positional / weight),
                        std::abs(scorer->tables()[3 + t].item(0)[cell] - symbolic / weight),
                        std::abs(scorer->tables()[6].item(0)[cell] - d.back())});
        }
      }
      rows = naive.Layer(layer, rows);
    }
    std::printf("%s: closed form and definition differ by %.2g\n", test_case.expected.c_str(),
                worst);
    EXPECT_LE(worst, 1e-9);
  }
}

}  // namespace
}  // namespace hopscope::golden

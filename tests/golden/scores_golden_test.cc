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

struct Asked {
  std::string queries = "last";
  std::string mode = "auto";
  int blocks = 16;
  double eps = 0;
  std::vector<std::string> metrics = {"positional", "symbolic", "self_mass"};
};

// Tables of scorer positional_symbolic over some sequences: metric * 3 + tau.
std::unique_ptr<Scorer> Score(const Model& model, const std::vector<Sequence>& sequences,
                              engine::ItemFailures* failures, const Asked& asked = {}) {
  v1::ScorerSpec spec;
  spec.set_name("positional_symbolic");
  auto& params = *spec.mutable_params()->mutable_fields();
  params["queries"].set_string_value(asked.queries);
  params["mode"].set_string_value(asked.mode);
  params["blocks"].set_number_value(asked.blocks);
  params["eps"].set_number_value(asked.eps);
  for (const std::string& metric : asked.metrics) {
    params["metrics"].mutable_list_value()->add_values()->set_string_value(metric);
  }
  auto* list = (*spec.mutable_params()->mutable_fields())["taus"].mutable_list_value();
  for (const double tau : Taus()) list->add_values()->set_number_value(tau);
  auto scorer = engine::MakeScorer("scorer", spec, model.architecture(),
                                   static_cast<int64_t>(sequences.size()), failures,
                                   {.queries = engine::ListSource(sequences).queries()});
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

TEST_P(ScoresGoldenTest, ClampedCosinesAndTheExclusionPrincipleAgree) {
  const auto& [name, dtype] = GetParam();
  const auto model = LoadModel(GoldenPath("models/" + name), dtype);
  const Tensors inputs(GoldenPath("expected/" + name + "/expected.safetensors"));
  const nlohmann::json scores = ReadJson(GoldenPath("expected/" + name + "/scores.json"));
  const std::pair<const char*, const char*> metrics[] = {{"positional", "pos_torch_eps"},
                                                         {"symbolic", "sym_torch_eps"},
                                                         {"exclusion_rhs", "exclusion_rhs"},
                                                         {"logit_variance", "var_lambda"},
                                                         {"exclusion_slack", "exclusion_slack"}};
  Asked asked{.eps = 1e-8, .metrics = {}};
  for (const auto& [metric, expected] : metrics) asked.metrics.push_back(metric);
  double worst_score[3] = {};
  double worst_relative = 0;
  for (const int length : {5, 17, 33}) {
    engine::ItemFailures failures(1);
    const auto scorer = Score(*model, {ToSequence(inputs.Integers(absl::StrCat("ids.", length)))},
                              &failures, asked);
    EXPECT_FALSE(failures.failed(0)) << failures.message(0);
    const nlohmann::json& by_length = scores.at("by_len").at(absl::StrCat(length));
    const int64_t heads = model->architecture().heads;
    for (size_t m = 0; m < 5; ++m) {
      const nlohmann::json& expected = by_length.at(metrics[m].second);
      for (size_t t = 0; t < 3; ++t) {
        const engine::MetricTable& table = scorer->tables()[3 * m + t];
        ASSERT_EQ(table.metric(), metrics[m].first);
        for (int64_t cell = 0; cell < table.cells(); ++cell) {
          const nlohmann::json& value = expected[cell / heads][cell % heads];
          const double got = table.item(0)[cell];
          if (m < 2) {
            worst_score[t] = std::max(worst_score[t], std::abs(got - value[t].get<double>()));
          } else {
            const double scale =
                by_length.at("exclusion_rhs")[cell / heads][cell % heads].get<double>();
            worst_relative = std::max(worst_relative, std::abs(got - value.get<double>()) / scale);
          }
        }
      }
    }
  }
  std::printf("%s: with eps off by %.2g, %.2g, %.2g; exclusion by %.2g of the bound\n",
              name.c_str(), worst_score[0], worst_score[1], worst_score[2], worst_relative);
  if (model->float64()) {
    for (const double off : worst_score) EXPECT_LE(off, 1e-9);
    EXPECT_LE(worst_relative, 1e-8);
  } else {
    const double tolerance = model->architecture().family == "gpt_neo" ? 4e-4 : 2e-5;
    EXPECT_LE(worst_score[0], 1e-3);
    EXPECT_LE(worst_score[1], tolerance);
    EXPECT_LE(worst_score[2], tolerance);
    EXPECT_LE(worst_relative, tolerance);
  }
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

TEST_P(TrainedScoresTest, ClampedCosinesAndTheExclusionPrincipleAgree) {
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
  const auto scorer = Score(*model, sequences, &failures,
                            {.eps = 1e-8,
                             .metrics = {"positional", "symbolic", "exclusion_rhs",
                                         "logit_variance", "exclusion_slack"}});
  const int64_t layers = model->architecture().layers;
  double worst_score[3] = {};
  for (const size_t m : {0, 1}) {
    const std::vector<double> expected =  // [8, 12, 1, 3]
        scores.Doubles(m == 0 ? "pos_torch_eps.first8" : "sym_torch_eps.first8");
    for (size_t i = 0; i < expected.size(); ++i) {
      const double got = scorer->tables()[3 * m + i % 3].item(
          static_cast<int64_t>(i / 3) / layers)[static_cast<int64_t>(i / 3) % layers];
      worst_score[i % 3] = std::max(worst_score[i % 3], std::abs(got - expected[i]));
    }
  }
  double worst_relative = 0;
  const std::vector<double> bound = scores.Doubles("exclusion_rhs");  // [64, 12, 1]
  const char* const names[] = {"exclusion_rhs", "var_lambda", "exclusion_slack"};
  for (size_t m = 0; m < 3; ++m) {
    const std::vector<double> expected = scores.Doubles(names[m]);
    for (size_t i = 0; i < expected.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i);
      const double got = scorer->tables()[6 + 3 * m].item(at / layers)[at % layers];
      worst_relative = std::max(worst_relative, std::abs(got - expected[i]) / bound[i]);
    }
  }
  std::printf("%s %s: with eps off by %.2g, %.2g, %.2g; exclusion by %.2g of the bound\n",
              task.c_str(), DtypeName(dtype).c_str(), worst_score[0], worst_score[1],
              worst_score[2], worst_relative);
  for (const double off : worst_score) EXPECT_LE(off, model->float64() ? 1e-9 : 1e-3);
  EXPECT_LE(worst_relative, model->float64() ? 1e-8 : 1e-4);
}

TEST_P(TrainedScoresTest, AgreeForTheQueriesOfTheHopPath) {
  const auto& [task, dtype] = GetParam();
  const auto model = LoadModel(CheckpointPath(task + "/step-06750"), dtype);
  const Tensors inputs(GoldenPath("expected/trained_" + task + "/expected.safetensors"));
  const nlohmann::json expected =
      ReadJson(GoldenPath("expected/trained_" + task + "/scores.json")).at("hops_mode");
  const std::vector<int64_t> ids = inputs.Integers("ids");
  const std::vector<int64_t> queries = inputs.Integers("path_queries");  // [64, 4], -1 where none
  std::vector<Sequence> sequences;
  for (size_t i = 0; i < ids.size() / 17; ++i) {
    Sequence& sequence =
        sequences.emplace_back(ToSequence({ids.begin() + i * 17, ids.begin() + (i + 1) * 17}));
    for (size_t step = 0; step < 4; ++step) {
      const int64_t slot = queries[4 * i + step];
      if (slot >= 0) sequence.queries.push_back(static_cast<int32_t>(slot));
    }
  }
  engine::ItemFailures failures(static_cast<int64_t>(sequences.size()));
  const auto scorer = Score(*model, sequences, &failures, {.queries = "hops"});
  const int64_t layers = model->architecture().layers;
  double worst[3] = {};
  for (size_t m = 0; m < 2; ++m) {
    for (size_t t = 0; t < 3; ++t) {
      const engine::MetricTable& table = scorer->tables()[3 * m + t];
      ASSERT_EQ(table.axes().steps, 4);
      for (int64_t layer = 0; layer < layers; ++layer) {
        double sum = 0;
        int64_t count = 0;
        for (int64_t item = 0; item < table.items(); ++item) {
          for (int64_t step = 0; step < 4; ++step) {
            const double value = table.item(item)[step * layers + layer];
            const bool there = step < static_cast<int64_t>(sequences[item].queries.size());
            EXPECT_EQ(std::isnan(value), !there || sequences[item].queries[step] < 2);
            if (std::isnan(value)) continue;
            sum += value;
            ++count;
          }
        }
        ASSERT_EQ(count, expected.at("queries").get<int64_t>());
        const double mean = expected.at(m == 0 ? "pos" : "sym")[layer][0][t];
        worst[t] = std::max(worst[t], std::abs(sum / static_cast<double>(count) - mean));
      }
    }
  }
  std::printf("%s %s: means over hop queries off by %.2g, %.2g, %.2g\n", task.c_str(),
              DtypeName(dtype).c_str(), worst[0], worst[1], worst[2]);
  for (const double off : worst) EXPECT_LE(off, model->float64() ? 1e-9 : 1e-4);
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

// Block scores as they are defined, on attention rows of whole re-runs of a layer.
struct BlockCase {
  std::string name;
  std::vector<std::pair<int32_t, int32_t>> own;     // what the sequence brings
  std::vector<std::pair<size_t, size_t>> expected;  // what is swapped
  int blocks = 16;
};

double MeanOver(const std::vector<double>& row, std::pair<size_t, size_t> block) {
  double sum = 0;
  for (size_t slot = block.first; slot < block.second; ++slot) sum += row[slot];
  return sum / static_cast<double>(block.second - block.first);
}

double CosineOf(double a, double b, double c, double d) {
  const double norms = std::hypot(a, b) * std::hypot(c, d);
  return norms > 0 ? (a * c + b * d) / norms : 0;
}

TEST(LiteralBlockScoresTest, ClosedFormIsTheDefinition) {
  std::vector<std::pair<size_t, size_t>> sixths;
  for (size_t begin = 2; begin < 32; begin += 5) sixths.emplace_back(begin, begin + 5);
  const BlockCase cases[] = {
      {.name = "6 equal blocks, 2 keys left over", .expected = sixths, .blocks = 6},
      {.name = "unequal blocks with gaps",
       .own = {{1, 4}, {4, 9}, {12, 13}, {20, 32}},
       .expected = {{1, 4}, {4, 9}, {12, 13}, {20, 32}}},
  };
  const std::vector<std::string> metrics = {"positional",         "symbolic",
                                            "positional_centred", "symbolic_centred",
                                            "swapped_mass",       "contrast"};
  for (const char* model_name : {"gptj_1head", "gptj_partial"}) {
    const std::string path = GoldenPath(absl::StrCat("models/", model_name));
    const std::vector<int64_t> ids =
        Tensors(GoldenPath(absl::StrCat("expected/", model_name, "/expected.safetensors")))
            .Integers("ids.33");
    const auto model = LoadModel(path, v1::DTYPE_FLOAT64);
    const NaiveModel naive(path);
    for (const BlockCase& test_case : cases) {
      Sequence sequence = ToSequence(ids);
      sequence.blocks = test_case.own;
      engine::ItemFailures failures(1);
      const auto scorer = Score(*model, {sequence}, &failures,
                                {.mode = "blocks", .blocks = test_case.blocks, .metrics = metrics});
      const auto& blocks = test_case.expected;
      const double uniform = 1 / static_cast<double>(ids.size());
      NaiveModel::Matrix rows = naive.Embed(sequence.tokens);
      double worst = 0;
      for (int64_t layer = 0; layer < naive.architecture().layers; ++layer) {
        const NaiveModel::Matrix before = naive.LastAttention(layer, rows);
        struct Pair {
          size_t i, j;
          NaiveModel::Matrix after;
        };
        std::vector<Pair> pairs;
        for (size_t i = 0; i < blocks.size(); ++i) {
          for (size_t j = i + 1; j < blocks.size(); ++j) {
            NaiveModel::Matrix swapped = rows;
            const size_t common =
                std::min(blocks[i].second - blocks[i].first, blocks[j].second - blocks[j].first);
            for (size_t k = 0; k < common; ++k) {
              std::swap(swapped[blocks[i].first + k], swapped[blocks[j].first + k]);
            }
            pairs.push_back({i, j, naive.LastAttention(layer, swapped)});
          }
        }
        for (int64_t head = 0; head < naive.architecture().heads; ++head) {
          std::vector<double> d;
          for (const auto& block : blocks) d.push_back(MeanOver(before[head], block));
          double largest = 0;
          for (const Pair& p : pairs) largest = std::max(largest, std::abs(d[p.i] - d[p.j]));
          for (size_t t = 0; t < Taus().size(); ++t) {
            double weight = 0;
            double sums[6] = {};
            for (const Pair& p : pairs) {
              const double x = d[p.i];
              const double y = d[p.j];
              const double after_x = MeanOver(p.after[head], blocks[p.i]);
              const double after_y = MeanOver(p.after[head], blocks[p.j]);
              const double alpha = std::exp((std::abs(x - y) - largest) / Taus()[t]);
              const double u = uniform;
              const double values[6] = {
                  CosineOf(after_x, after_y, x, y),
                  CosineOf(after_x, after_y, y, x),
                  CosineOf(after_x - u, after_y - u, x - u, y - u),
                  CosineOf(after_x - u, after_y - u, y - u, x - u),
                  x * static_cast<double>(blocks[p.i].second - blocks[p.i].first) +
                      y * static_cast<double>(blocks[p.j].second - blocks[p.j].first),
                  std::abs(x - y) / (x + y)};
              weight += alpha;
              for (size_t m = 0; m < 6; ++m) sums[m] += alpha * values[m];
            }
            for (size_t m = 0; m < 6; ++m) {
              const double got =
                  scorer->tables()[3 * m + t].item(0)[layer * naive.architecture().heads + head];
              worst = std::max(worst, std::abs(got - sums[m] / weight));
            }
          }
        }
        rows = naive.Layer(layer, rows);
      }
      std::printf("%s, %s: closed form and definition differ by %.2g\n", model_name,
                  test_case.name.c_str(), worst);
      EXPECT_LE(worst, 1e-9);
    }
  }
}

// Two ways to the same logits, in every kind of model: with rotation and without, biased by slot,
// capped, with windows.
TEST(BlockScoresTest, BlocksOfOneKeyAreKeys) {
  const std::vector<std::string> metrics = {"positional",         "symbolic", "self_mass",
                                            "positional_centred", "contrast", "keys"};
  for (const char* name : {"gemma2", "mistral_sw", "gpt_neo_local", "bloom_h6", "mpt_h6",
                           "gpt2_tied", "neox_r25_par", "gptj_partial"}) {
    const auto model = LoadModel(GoldenPath(absl::StrCat("models/", name)), v1::DTYPE_FLOAT64);
    Sequence sequence =
        ToSequence(Tensors(GoldenPath(absl::StrCat("expected/", name, "/expected.safetensors")))
                       .Integers("ids.33"));
    engine::ItemFailures failures(1);
    const auto tokens =
        Score(*model, {sequence}, &failures, {.queries = "all", .metrics = metrics});
    for (int32_t key = 0; key < 32; ++key) sequence.blocks.emplace_back(key, key + 1);
    const auto blocks = Score(*model, {sequence}, &failures,
                              {.queries = "all", .mode = "blocks", .metrics = metrics});
    double worst = 0;
    for (size_t i = 0; i < tokens->tables().size(); ++i) {
      for (int64_t cell = 0; cell < tokens->tables()[i].cells(); ++cell) {
        worst = std::max(
            worst, std::abs(tokens->tables()[i].item(0)[cell] - blocks->tables()[i].item(0)[cell]));
      }
    }
    EXPECT_FALSE(failures.failed(0)) << failures.message(0);
    EXPECT_LE(worst, 1e-9) << name;
  }
}

TEST(BlockScoresTest, AutoSwapsBlocksOfLongSequencesAlone) {
  const auto model = LoadModel(GoldenPath("models/gptj_1head"), v1::DTYPE_FLOAT64);
  std::vector<int64_t> ids;
  const std::vector<int64_t> some =
      Tensors(GoldenPath("expected/gptj_1head/expected.safetensors")).Integers("ids.33");
  for (size_t i = 0; i < 66; ++i) ids.push_back(some[i % some.size()]);
  const auto scores = [&](size_t tokens, const std::string& mode) {
    engine::ItemFailures failures(1);
    const auto scorer = Score(*model, {ToSequence({ids.begin(), ids.begin() + tokens})}, &failures,
                              {.mode = mode, .metrics = {"positional", "keys"}});
    return std::pair(scorer->tables()[0].item(0)[0], scorer->tables()[3].item(0)[0]);
  };
  EXPECT_EQ(scores(65, "auto"), scores(65, "tokens"));
  EXPECT_EQ(scores(65, "auto").second, 64);
  EXPECT_EQ(scores(66, "auto"), scores(66, "blocks"));
  EXPECT_EQ(scores(66, "auto").second, 16);
}

TEST(AllQueriesTest, GiveTheMeanOverTheQueriesOneByOne) {
  const auto model = LoadModel(GoldenPath("models/llama_gqa"), v1::DTYPE_FLOAT64);
  Sequence sequence =
      ToSequence(Tensors(GoldenPath("expected/llama_gqa/expected.safetensors")).Integers("ids.17"));
  engine::ItemFailures failures(1);
  const auto all = Score(*model, {sequence}, &failures, {.queries = "all"});
  for (int32_t query = 2; query < 17; ++query) sequence.queries.push_back(query);
  const auto each = Score(*model, {sequence}, &failures, {.queries = "hops"});
  for (size_t i = 0; i < all->tables().size(); ++i) {
    const int64_t cells = all->tables()[i].cells();
    for (int64_t cell = 0; cell < cells; ++cell) {
      double sum = 0;
      for (int64_t step = 0; step < 15; ++step) {
        sum += each->tables()[i].item(0)[step * cells + cell];
      }
      EXPECT_NEAR(all->tables()[i].item(0)[cell], sum / 15, 1e-12);
    }
  }
  // A query sees what comes before it alone: the last of a shorter sequence.
  sequence.tokens.resize(9);
  sequence.queries.clear();
  const auto last = Score(*model, {sequence}, &failures);
  const int64_t cells = last->tables()[0].cells();
  for (int64_t cell = 0; cell < cells; ++cell) {
    EXPECT_NEAR(each->tables()[1].item(0)[(8 - 2) * cells + cell], last->tables()[1].item(0)[cell],
                1e-9);
  }
}

TEST(PositionInContentTest, LearnedPositionsAreFlagged) {
  engine::ItemFailures failures(1);
  for (const auto& [name, flagged] :
       {std::pair{"gpt2_tied", true}, {"opt", true}, {"llama_gqa", false}, {"bloom_h4", false}}) {
    const auto model = LoadModel(GoldenPath(absl::StrCat("models/", name)), v1::DTYPE_FLOAT64);
    EXPECT_EQ(
        Score(*model, {ToSequence({1, 2, 3})}, &failures)->flags(),
        flagged ? std::vector<std::string>{"position_in_content"} : std::vector<std::string>{})
        << name;
  }
}

// Where the window covers fewer keys than there are, only those are swapped: as if the sequence
// began there, for a layer that has seen nothing else.
TEST(WindowTest, OnlyKeysThatTheQuerySeesAreSwapped) {
  const auto model = LoadModel(GoldenPath("models/mistral_sw"), v1::DTYPE_FLOAT64);
  const int64_t window = model->architecture().attention_window[0];
  ASSERT_GT(window, 2);
  ASSERT_LT(window, 33);
  const std::vector<int64_t> ids =
      Tensors(GoldenPath("expected/mistral_sw/expected.safetensors")).Integers("ids.33");
  const std::vector<std::string> metrics = {"positional", "symbolic", "self_mass", "keys"};
  engine::ItemFailures failures(1);
  const auto whole = Score(*model, {ToSequence(ids)}, &failures, {.metrics = metrics});
  const auto cut =
      Score(*model, {ToSequence({ids.end() - window, ids.end()})}, &failures, {.metrics = metrics});
  EXPECT_FALSE(failures.failed(0));
  EXPECT_EQ(whole->tables()[9].item(0)[0], window - 1);
  for (size_t table = 0; table < 12; ++table) {
    for (int64_t head = 0; head < model->architecture().heads; ++head) {
      EXPECT_NEAR(whole->tables()[table].item(0)[head], cut->tables()[table].item(0)[head], 1e-9);
    }
  }
}

}  // namespace
}  // namespace hopscope::golden

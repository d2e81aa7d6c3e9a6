// Frequency use, logit gap, attention statistics and detectors against values computed beside
// Hugging Face's forward pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/scores/weighted_id.h"
#include "tests/golden/golden_data.h"
#include "worker/engine/compute_pool.h"
#include "worker/engine/evaluation.h"
#include "worker/engine/scorers/plane_logits.h"
#include "worker/engine/scorers/registry.h"
#include "worker/engine/sequence_source.h"

namespace hopscope::golden {
namespace {

using engine::ItemFailures;
using engine::MetricTable;
using engine::Model;
using engine::Scorer;
using engine::Sequence;
using google::protobuf::Value;

Value Text(const std::string& text) {
  Value value;
  value.set_string_value(text);
  return value;
}

Value Flag(bool flag) {
  Value value;
  value.set_bool_value(flag);
  return value;
}

Value Number(double number) {
  Value value;
  value.set_number_value(number);
  return value;
}

Value List(const std::vector<std::string>& texts) {
  Value value;
  for (const std::string& text : texts) {
    value.mutable_list_value()->add_values()->set_string_value(text);
  }
  return value;
}

using Params = std::map<std::string, Value>;

// Several scorers over some sequences, in one pass.
class Scored {
 public:
  Scored(const Model& model, const std::vector<std::pair<std::string, Params>>& scorers,
         const std::vector<Sequence>& sequences)
      : failures_(static_cast<int64_t>(sequences.size())) {
    const engine::ListSource source(sequences);
    engine::Evaluation evaluation{.model = &model, .source = &source};
    for (const auto& [name, params] : scorers) {
      v1::ScorerSpec spec;
      spec.set_name(name);
      for (const auto& [key, value] : params) {
        (*spec.mutable_params()->mutable_fields())[key] = value;
      }
      auto scorer = engine::MakeScorer("scorer", spec, model.architecture(),
                                       static_cast<int64_t>(sequences.size()), &failures_);
      EXPECT_TRUE(scorer.ok()) << scorer.status();
      evaluation.scorers.push_back(scorer->get());
      scorers_.push_back(*std::move(scorer));
    }
    engine::ComputePool pool(1);
    const absl::Status status = engine::Evaluate(evaluation, &pool, nullptr);
    EXPECT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < sequences.size(); ++i) {
      EXPECT_FALSE(failures_.failed(static_cast<int64_t>(i)))
          << failures_.message(static_cast<int64_t>(i));
    }
  }

  const MetricTable& table(size_t scorer, const std::string& metric) const {
    for (const MetricTable& table : scorers_[scorer]->tables()) {
      if (table.metric() == metric) return table;
    }
    ADD_FAILURE() << "no table " << metric;
    std::abort();
  }

  std::vector<double> item(size_t scorer, const std::string& metric, int64_t item = 0) const {
    const MetricTable& found = table(scorer, metric);
    return {found.item(item), found.item(item) + found.cells()};
  }

 private:
  ItemFailures failures_;
  std::vector<std::unique_ptr<Scorer>> scorers_;
};

Sequence ToSequence(const std::vector<int64_t>& ids) {
  Sequence sequence;
  sequence.tokens = {ids.begin(), ids.end()};
  sequence.label = -1;
  return sequence;
}

// [L][H] of JSON as one list.
std::vector<double> Flat(const nlohmann::json& nested) {
  std::vector<double> values;
  for (const auto& layer : nested) {
    for (const auto& head : layer) values.push_back(head.get<double>());
  }
  return values;
}

double MaxRelative(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i]));
    if (!(difference <= worst)) worst = difference;
  }
  return worst;
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

class HeadMetricsGoldenTest : public testing::TestWithParam<std::tuple<std::string, v1::Dtype>> {
 protected:
  HeadMetricsGoldenTest()
      : name_(std::get<0>(GetParam())),
        model_(LoadModel(GoldenPath("models/" + name_), std::get<1>(GetParam()))),
        inputs_(GoldenPath("expected/" + name_ + "/expected.safetensors")),
        scores_(ReadJson(GoldenPath("expected/" + name_ + "/scores.json"))),
        tensors_(GoldenPath("expected/" + name_ + "/scores.safetensors")),
        // GPT-Neo does not scale its logits, which amplifies rounding.
        tolerance_(model_->float64()                            ? 1e-9
                   : model_->architecture().family == "gpt_neo" ? 4e-4
                                                                : 2e-5),
        logit_tolerance_(model_->float64() ? 1e-9 : 20 * tolerance_) {}

  Sequence Ids(int length) const {
    return ToSequence(inputs_.Integers(absl::StrCat("ids.", length)));
  }

  const std::string name_;
  const std::shared_ptr<const Model> model_;
  const Tensors inputs_;
  const nlohmann::json scores_;
  const Tensors tensors_;
  const double tolerance_;
  const double logit_tolerance_;
};

TEST_P(HeadMetricsGoldenTest, GapsStatisticsAndDetectorsAgree) {
  const Params excluding = {{"exclude_bos", Flag(true)}, {"exclude_current_token", Flag(true)}};
  Params abs_excluding = excluding;
  abs_excluding["form"] = Text("abs");
  double worst_gap = 0;
  double worst_attention = 0;
  double worst_detector = 0;
  for (const int length : {5, 17, 33}) {
    const Scored scored(*model_,
                        {{"logit_gap", {}},
                         {"attention_stats", {}},
                         {"detectors", {}},
                         {"detectors", excluding},
                         {"detectors", {{"form", Text("abs")}}},
                         {"detectors", abs_excluding}},
                        {Ids(length)});
    const nlohmann::json& expected = scores_.at("by_len").at(absl::StrCat(length));
    worst_gap =
        std::max({worst_gap, MaxDifference(scored.item(0, "gap"), Flat(expected.at("logit_gap"))),
                  MaxDifference(scored.item(0, "self_logit"), Flat(expected.at("self_logit")))});
    for (const auto& [metric, want] :
         {std::pair{"entropy", "entropy_mean"}, std::pair{"entropy_last", "entropy_last"},
          std::pair{"norm_entropy", "norm_entropy_mean"},
          std::pair{"norm_entropy_last", "norm_entropy_last"}, std::pair{"sink_mass", "sink_mass"},
          std::pair{"sink_mass_last", "sink_mass_last"}, std::pair{"self_mass", "self_mass"},
          std::pair{"self_mass_last", "self_mass_last"},
          std::pair{"mean_distance", "mean_distance"},
          std::pair{"mean_distance_last", "mean_distance_last"},
          std::pair{"max_weight_last", "max_weight_last"}}) {
      worst_attention =
          std::max(worst_attention,
                   MaxRelative(scored.item(1, metric), Flat(expected.at("attention").at(want))));
    }
    for (const char* metric : {"previous_token", "duplicate_token", "induction"}) {
      const nlohmann::json& head = expected.at("tl_detect_head").at(absl::StrCat(metric, "_head"));
      const char* const keys[] = {"mul", "mul_exclude_bos_and_current", "abs_unrounded",
                                  "abs_exclude_bos_and_current_unrounded"};
      for (size_t i = 0; i < 4; ++i) {
        worst_detector = std::max(
            worst_detector, MaxDifference(scored.item(2 + i, metric), Flat(head.at(keys[i]))));
      }
    }
  }
  std::printf("%s: gaps off by %.2g, statistics by %.2g, detectors by %.2g\n", name_.c_str(),
              worst_gap, worst_attention, worst_detector);
  EXPECT_LE(worst_gap, logit_tolerance_);
  EXPECT_LE(worst_attention, model_->float64() ? tolerance_ : 4 * tolerance_);
  EXPECT_LE(worst_detector, model_->float64() ? tolerance_ : 4 * tolerance_);
}

TEST_P(HeadMetricsGoldenTest, FrequencyUseAgrees) {
  const checkpoint::Architecture& a = model_->architecture();
  if (checkpoint::RotaryPlanes(a) == 0) {
    EXPECT_FALSE(tensors_.Has("freq_u.17"));
    return;
  }
  const Params all = {{"metrics", List({"max_logit", "query_norm", "key_norm", "share"})}};
  const Scored scored(*model_, {{"frequency_use", all}}, {Ids(5), Ids(17), Ids(33)});
  const char* const metrics[][2] = {
      {"max_logit", "freq_u"}, {"query_norm", "usage_q"}, {"key_norm", "usage_k"}};
  double worst = 0;
  std::vector<double> mean_u;
  for (const auto& [metric, want] : metrics) {
    const int lengths[] = {5, 17, 33};
    std::vector<double> mean(scored.table(0, metric).cells(), 0);
    for (int64_t i = 0; i < 3; ++i) {
      const std::vector<double> values = scored.item(0, metric, i);
      worst = std::max(worst,
                       MaxRelative(values, tensors_.Doubles(absl::StrCat(want, ".", lengths[i]))));
      for (size_t cell = 0; cell < mean.size(); ++cell) mean[cell] += values[cell] / 3;
    }
    worst = std::max(worst, MaxRelative(mean, tensors_.Doubles(absl::StrCat(want, ".mean"))));
    if (std::string(metric) == "max_logit") mean_u = mean;
  }
  const int64_t planes = checkpoint::RotaryPlanes(a);
  const std::vector<double> expected = Flat(scores_.at("weighted_id"));
  const std::vector<double> rounded = Flat(scores_.at("weighted_id_rounded"));
  double worst_id = 0;
  for (size_t head = 0; head < expected.size(); ++head) {
    const double id =
        scores::WeightedId(mean_u.data() + static_cast<int64_t>(head) * planes, planes);
    worst_id = std::max(worst_id, std::abs(id - expected[head]));
    EXPECT_EQ(std::nearbyint(id), rounded[head]);
  }
  std::printf("%s: frequency use off by %.2g (relative), weighted IDs by %.2g\n", name_.c_str(),
              worst, worst_id);
  EXPECT_LE(worst, model_->float64() ? 1e-8 : 2e-5);
  EXPECT_LE(worst_id, model_->float64() ? 1e-8 : 1e-3);
  // Shares are parts of a whole.
  const std::vector<double> share = scored.item(0, "share", 1);
  for (size_t head = 0; head < expected.size(); ++head) {
    double sum = 0;
    for (int64_t t = 0; t < planes; ++t) sum += std::abs(share[head * planes + t]);
    EXPECT_NEAR(sum, 1, 1e-12);
  }
}

TEST_P(HeadMetricsGoldenTest, SecondCopiesAgree) {
  std::vector<Sequence> sequences;
  const std::vector<int64_t> ids = tensors_.Integers("li.ids");
  for (size_t i = 0; i < ids.size(); i += 25) {
    sequences.push_back(ToSequence({ids.begin() + i, ids.begin() + i + 25}));
  }
  const Scored scored(
      *model_,
      {{"detectors", {{"form", Text("second_copy")}}},
       {"detectors", {{"form", Text("second_copy")}, {"repeat_length", Number(12)}}},
       {"detectors", {{"form", Text("diagonal")}, {"repeat_length", Number(7)}}}},
      sequences);
  const nlohmann::json& expected = scores_.at("li_detectors");
  double worst = 0;
  for (const auto& [metric, want] :
       {std::pair{"previous_token", "prev"}, std::pair{"duplicate_token", "dup"},
        std::pair{"induction", "ind"}}) {
    std::vector<double> mean = Flat(expected.at(want));
    for (double& value : mean) value = -value;
    for (size_t i = 0; i < sequences.size(); ++i) {
      const std::vector<double> values = scored.item(0, metric, static_cast<int64_t>(i));
      EXPECT_EQ(values, scored.item(1, metric, static_cast<int64_t>(i)));
      EXPECT_TRUE(std::isnan(scored.item(2, metric, static_cast<int64_t>(i))[0]))
          << "the last 14 tokens are no run of 7 twice";
      for (size_t cell = 0; cell < mean.size(); ++cell) {
        mean[cell] += values[cell] / static_cast<double>(sequences.size());
      }
    }
    for (const double difference : mean) worst = std::max(worst, std::abs(difference));
  }
  std::printf("%s: second copies off by %.2g\n", name_.c_str(), worst);
  EXPECT_LE(worst, tolerance_);
}

INSTANTIATE_TEST_SUITE_P(Models, HeadMetricsGoldenTest,
                         testing::Combine(testing::ValuesIn(ScoredModels()),
                                          testing::Values(v1::DTYPE_FLOAT64, v1::DTYPE_FLOAT32)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" +
                                  DtypeName(std::get<1>(info.param));
                         });

class TrainedHeadMetricsTest : public testing::TestWithParam<std::string> {};

TEST_P(TrainedHeadMetricsTest, FrequencyUseAndGapsAgreeForAll64Sequences) {
  const auto model = LoadModel(CheckpointPath(GetParam() + "/step-06750"), v1::DTYPE_FLOAT64);
  const std::string folder = "expected/trained_" + GetParam();
  const Tensors inputs(GoldenPath(folder + "/expected.safetensors"));
  const Tensors tensors(GoldenPath(folder + "/scores.safetensors"));
  const std::vector<int64_t> ids = inputs.Integers("ids");
  std::vector<Sequence> sequences;
  for (size_t i = 0; i < ids.size(); i += 17) {
    sequences.push_back(ToSequence({ids.begin() + i, ids.begin() + i + 17}));
  }
  const Params all = {{"metrics", List({"max_logit", "query_norm", "key_norm"})}};
  const Scored scored(*model, {{"frequency_use", all}}, sequences);
  for (const auto& [metric, want] :
       {std::pair{"max_logit", "freq_u.mean"}, std::pair{"query_norm", "usage_q.mean"},
        std::pair{"key_norm", "usage_k.mean"}}) {
    std::vector<double> mean(scored.table(0, metric).cells(), 0);
    for (size_t i = 0; i < sequences.size(); ++i) {
      const std::vector<double> values = scored.item(0, metric, static_cast<int64_t>(i));
      for (size_t cell = 0; cell < mean.size(); ++cell) {
        mean[cell] += values[cell] / static_cast<double>(sequences.size());
      }
    }
    EXPECT_LE(MaxRelative(mean, tensors.Doubles(want)), 1e-8) << metric;
  }
}

TEST_P(TrainedHeadMetricsTest, SlowPlanesGoByContent) {
  // The slowest plane turns by a thousandth over the whole sequence: where a key stands does not
  // matter to it.
  const auto model = LoadModel(CheckpointPath(GetParam() + "/step-06750"), v1::DTYPE_FLOAT64);
  const Tensors inputs(GoldenPath("expected/trained_" + GetParam() + "/expected.safetensors"));
  std::vector<int64_t> ids = inputs.Integers("ids");
  ids.resize(17);
  const Scored scored(
      *model,
      {{"frequency_use",
        {{"metrics", List({"plane_positional", "plane_symbolic"})}, {"tau", Number(0.05)}}}},
      {ToSequence(ids)});
  const std::vector<double> positional = scored.item(0, "plane_positional");
  const std::vector<double> symbolic = scored.item(0, "plane_symbolic");
  const int64_t planes = checkpoint::RotaryPlanes(model->architecture());
  ASSERT_EQ(static_cast<int64_t>(symbolic.size()), model->architecture().layers * planes);
  for (size_t cell = 0; cell < symbolic.size(); ++cell) {
    EXPECT_GE(positional[cell], 0);
    EXPECT_LE(positional[cell], 1 + 1e-12);
    EXPECT_LE(symbolic[cell], 1 + 1e-12);
    const bool slowest = static_cast<int64_t>(cell) % planes == planes - 1;
    EXPECT_GE(symbolic[cell], slowest ? 0.9999 : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, TrainedHeadMetricsTest, testing::Values("number", "letter"));

}  // namespace
}  // namespace hopscope::golden

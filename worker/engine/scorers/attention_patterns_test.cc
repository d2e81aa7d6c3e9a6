// Scorers that look at attention, shown attention of known patterns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common/checkpoint/testing/write_checkpoint.h"
#include "worker/engine/model/model.h"
#include "worker/engine/scorers/logit_gap.h"
#include "worker/engine/scorers/registry.h"

namespace hopscope::engine {
namespace {

using Matrix = std::vector<std::vector<double>>;  // attention [T, T]

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

google::protobuf::Value Text(const std::string& text) {
  google::protobuf::Value value;
  value.set_string_value(text);
  return value;
}
google::protobuf::Value Flag() {
  google::protobuf::Value value;
  value.set_bool_value(true);
  return value;
}
google::protobuf::Value Number(double number) {
  google::protobuf::Value value;
  value.set_number_value(number);
  return value;
}

using Params = std::vector<std::pair<std::string, google::protobuf::Value>>;

class AttentionPatternsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const checkpoint::testing::TempFolder folder;
    checkpoint::testing::WriteCheckpoint(folder, "model",
                                         {.layers = 1, .heads = 1, .d_model = 8, .vocab_size = 50});
    const auto opened = checkpoint::Checkpoint::Open(folder.Path("model"));
    ASSERT_TRUE(opened.ok()) << opened.status();
    const auto model = Model::Load(*opened, v1::DTYPE_FLOAT64);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *model;
  }
  static void TearDownTestSuite() { model_.reset(); }

  // What a scorer makes of one head's attention, shown a run of `tile` rows at a time; by metric.
  // After the last token `answer` has the largest logit.
  std::map<std::string, double> Score(const std::string& scorer, const Params& params,
                                      const Sequence& sequence, const Matrix& attention,
                                      int64_t tile = 128, int64_t answer = 0) {
    v1::ScorerSpec spec;
    spec.set_name(scorer);
    for (const auto& [key, value] : params) {
      (*spec.mutable_params()->mutable_fields())[key] = value;
    }
    failures_ = std::make_unique<ItemFailures>(1);
    auto made = MakeScorer("scorer", spec, model_->architecture(), 1, failures_.get());
    EXPECT_TRUE(made.ok()) << made.status();
    const std::vector<Sequence> sequences = {sequence};
    const std::vector<int64_t> items = {0};
    const auto batch =
        (*made)->StartBatch({.model = model_.get(), .sequences = sequences, .items = items});
    const auto tokens = static_cast<int64_t>(attention.size());
    std::vector<double> rows(tokens * tokens);
    for (int64_t i = 0; i < tokens; ++i) {
      std::copy(attention[i].begin(), attention[i].end(), rows.begin() + i * tokens);
    }
    for (int64_t first = 0; first < tokens; first += tile) {
      const int64_t count = std::min(tile, tokens - first);
      batch->OnAttention({.first_query = first,
                          .weights = {.float64 = true,
                                      .data = rows.data() + first * tokens,
                                      .rows = count,
                                      .columns = first + count,
                                      .stride = tokens}});
    }
    std::vector<double> logits(50, 0);
    logits[answer] = 1;
    batch->OnLogits(
        {.float64 = true, .data = logits.data(), .rows = 1, .columns = 50, .stride = 50});
    std::map<std::string, double> values;
    for (const MetricTable& table : (*made)->tables()) {
      values[table.metric()] = *table.item(0);
    }
    return values;
  }

  static std::shared_ptr<const Model> model_;
  std::unique_ptr<ItemFailures> failures_;
};

std::shared_ptr<const Model> AttentionPatternsTest::model_;

Sequence Tokens(std::vector<int32_t> tokens) {
  Sequence sequence;
  sequence.tokens = std::move(tokens);
  sequence.label = -1;
  return sequence;
}

// Every row attends to the one key that `key` names, itself where that is before the sequence.
Matrix Pointing(int64_t tokens, const std::function<int64_t(int64_t)>& key) {
  Matrix matrix(tokens, std::vector<double>(tokens, 0));
  for (int64_t i = 0; i < tokens; ++i) {
    const int64_t at = key(i);
    matrix[i][at < 0 ? i : at] = 1;
  }
  return matrix;
}

Matrix RandomAttention(int64_t tokens, std::mt19937_64* random) {
  std::normal_distribution<double> normal(0, 2);
  Matrix matrix(tokens, std::vector<double>(tokens, 0));
  for (int64_t i = 0; i < tokens; ++i) {
    double sum = 0;
    for (int64_t j = 0; j <= i; ++j) sum += matrix[i][j] = std::exp(normal(*random));
    for (int64_t j = 0; j <= i; ++j) matrix[i][j] /= sum;
  }
  return matrix;
}

TEST_F(AttentionPatternsTest, DetectorsAreOneForTheirOwnPattern) {
  // [BOS, r, r] with r of 6 different tokens.
  const Sequence sequence = Tokens({0, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6});
  const struct {
    const char* metric;
    int64_t offset;
  } patterns[] = {{"previous_token", 1}, {"duplicate_token", 6}, {"induction", 5}};
  for (const auto& [metric, offset] : patterns) {
    const Matrix attention = Pointing(13, [offset = offset](int64_t i) { return i - offset; });
    for (const char* form : {"second_copy", "diagonal"}) {
      const auto values = Score("detectors", {{"form", Text(form)}}, sequence, attention, 4);
      for (const auto& [name, value] : values) {
        EXPECT_EQ(value, name == metric ? 1 : 0) << form << " " << name;
      }
    }
  }
  // The patterns of detect_head: every row with a hit points at it, the others at the first token,
  // which is left out.
  const auto hit = [](int64_t offset) {
    return Pointing(13, [offset](int64_t i) {
      return offset == 1 ? std::max<int64_t>(i - 1, 0) : i >= 7 ? i - offset : 0;
    });
  };
  for (const auto& [metric, offset] : patterns) {
    const auto values = Score("detectors", {{"exclude_bos", Flag()}}, sequence, hit(offset));
    for (const auto& [name, value] : values) {
      EXPECT_EQ(value, name == metric ? 1 : 0) << "mul " << name;
    }
    EXPECT_EQ(Score("detectors", {{"exclude_bos", Flag()}, {"form", Text("abs")}}, sequence,
                    hit(offset))[metric],
              1);
  }
}

TEST_F(AttentionPatternsTest, PatternFormsAreThoseOfTheWholeMatrices) {
  std::mt19937_64 random(5);
  for (int repeat = 0; repeat < 2000; ++repeat) {
    const int64_t tokens = 1 + static_cast<int64_t>(random() % 14);
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < tokens; ++i) ids.push_back(static_cast<int32_t>(random() % 5));
    const Matrix a = RandomAttention(tokens, &random);
    const bool abs = random() % 2 == 0;
    const bool bos = random() % 2 == 0;
    const bool current = random() % 2 == 0;
    Params params;
    if (abs) params.emplace_back("form", Text("abs"));
    if (bos) params.emplace_back("exclude_bos", Flag());
    if (current) params.emplace_back("exclude_current_token", Flag());
    auto values =
        Score("detectors", params, Tokens(ids), a, 1 + static_cast<int64_t>(random() % 5));
    const std::pair<const char*, std::function<bool(int64_t, int64_t)>> patterns[] = {
        {"previous_token", [](int64_t i, int64_t j) { return j == i - 1; }},
        {"duplicate_token", [&](int64_t i, int64_t j) { return j < i && ids[j] == ids[i]; }},
        {"induction", [&](int64_t i, int64_t j) { return j >= 1 && ids[j - 1] == ids[i]; }}};
    for (const auto& [metric, pattern] : patterns) {
      double hits = 0, all = 0, distance = 0;
      for (int64_t i = 0; i < tokens; ++i) {
        for (int64_t j = 0; j <= i; ++j) {
          if ((bos && j == 0) || (current && j == i)) continue;
          const double m = pattern(i, j) ? 1 : 0;
          hits += a[i][j] * m;
          all += a[i][j];
          distance += std::abs(a[i][j] - m);
        }
      }
      if (abs) {
        ASSERT_NEAR(values[metric], 1 - distance / static_cast<double>(tokens), 1e-12) << metric;
      } else if (all > 1e-9) {
        ASSERT_NEAR(values[metric], hits / all, 1e-9) << metric;
      }
    }
  }
}

TEST_F(AttentionPatternsTest, FormsForRepeatsHaveNoValueForOtherSequences) {
  const Matrix attention = Pointing(7, [](int64_t i) { return i - 1; });
  for (const char* form : {"second_copy", "diagonal"}) {
    EXPECT_TRUE(std::isnan(Score("detectors", {{"form", Text(form)}}, Tokens({0, 1, 2, 3, 1, 2, 4}),
                                 attention)["previous_token"]));
    EXPECT_EQ(Score("detectors", {{"form", Text(form)}, {"repeat_length", Number(2)}},
                    Tokens({9, 8, 7, 1, 2, 1, 2}), attention)["previous_token"],
              1)
        << "whatever is in front";
    EXPECT_TRUE(std::isnan(Score("detectors", {{"form", Text(form)}, {"repeat_length", Number(4)}},
                                 Tokens({1, 1, 1, 1, 1, 1, 1}), attention)["induction"]))
        << "a repeat longer than half";
  }
}

TEST_F(AttentionPatternsTest, StatisticsOfSharpAndEvenAttention) {
  const Sequence sequence = Tokens({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  auto sharp = Score("attention_stats", {{"window", Number(2)}}, sequence,
                     Pointing(10, [](int64_t) { return 0; }), 3);
  EXPECT_EQ(sharp["entropy"], 0);
  EXPECT_EQ(sharp["norm_entropy"], 0);
  EXPECT_EQ(sharp["sink_mass"], 1);
  EXPECT_EQ(sharp["self_mass"], 0.1);
  EXPECT_EQ(sharp["mean_distance"], 4.5);
  EXPECT_EQ(sharp["mean_distance_last"], 9);
  EXPECT_EQ(sharp["max_weight"], 1);
  EXPECT_EQ(sharp["window_mass"], 0.2) << "rows 0 and 1";
  EXPECT_EQ(sharp["window_mass_last"], 0);

  Matrix even(10, std::vector<double>(10, 0));
  for (int i = 0; i < 10; ++i) std::fill_n(even[i].begin(), i + 1, 1.0 / (i + 1));
  auto flat = Score("attention_stats", {{"window", Number(5)}}, sequence, even, 4);
  EXPECT_NEAR(flat["norm_entropy"], 1, 1e-12);
  EXPECT_NEAR(flat["norm_entropy_last"], 1, 1e-12);
  EXPECT_NEAR(flat["entropy_last"], std::log(10), 1e-12);
  EXPECT_NEAR(flat["mean_distance_last"], 4.5, 1e-12);
  EXPECT_NEAR(flat["window_mass_last"], 0.5, 1e-12);
  EXPECT_NEAR(flat["max_weight_last"], 0.1, 1e-12);
}

TEST_F(AttentionPatternsTest, StatisticsDoNotDependOnHowRowsCome) {
  std::mt19937_64 random(6);
  for (int repeat = 0; repeat < 100; ++repeat) {
    const int64_t tokens = 2 + static_cast<int64_t>(random() % 20);
    const Matrix a = RandomAttention(tokens, &random);
    const Sequence sequence = Tokens(std::vector<int32_t>(tokens, 1));
    const auto whole = Score("attention_stats", {}, sequence, a);
    ASSERT_EQ(Score("attention_stats", {}, sequence, a, 1), whole);
    ASSERT_EQ(Score("attention_stats", {}, sequence, a, 3), whole);
    for (const auto& [metric, value] : whole) {
      ASSERT_GE(value, 0) << metric;
      if (metric.find("distance") == std::string::npos && metric.rfind("entropy", 0) != 0) {
        ASSERT_LE(value, 1 + 1e-12) << metric;
      }
    }
  }
}

TEST_F(AttentionPatternsTest, ASingleTokenHasNoNormalisedEntropy) {
  auto values = Score("attention_stats", {}, Tokens({1}), {{1}});
  EXPECT_TRUE(std::isnan(values["norm_entropy"]));
  EXPECT_TRUE(std::isnan(values["norm_entropy_last"]));
  EXPECT_EQ(values["self_mass"], 1);
  EXPECT_FALSE(failures_->failed(0));
}

TEST_F(AttentionPatternsTest, ANaNFailsTheItem) {
  Matrix attention = Pointing(4, [](int64_t i) { return i; });
  attention[2][1] = kNone;
  Score("attention_stats", {}, Tokens({1, 2, 3, 4}), attention);
  EXPECT_TRUE(failures_->failed(0));
}

TEST_F(AttentionPatternsTest, RetrievalCountsWhatIsCopiedFromTheNeedle) {
  // The needle 7 8 9 stands in slots 1 to 3; it is repeated from slot 6 on.
  Sequence sequence = Tokens({1, 7, 8, 9, 2, 3, 7, 8});
  sequence.needle = {1, 4};
  sequence.queries = {5, 6, 7};
  const auto copying = [](int64_t i) { return i - 4; };
  const auto score = [&](const Matrix& attention, int64_t answer, const Params& params = {}) {
    return Score("retrieval_head", params, sequence, attention, 3, answer)["retrieval_score"];
  };
  // After slot 5 comes 7, which stands in slot 1; after 6 comes 8; after 7 what the model says.
  EXPECT_EQ(score(Pointing(8, copying), 9), 1);
  EXPECT_EQ(score(Pointing(8, copying), 4), 2.0 / 3);
  EXPECT_EQ(score(Pointing(8, [](int64_t i) { return i - 5; }), 9), 0) << "one slot off";
  EXPECT_EQ(score(Pointing(8, [](int64_t i) { return i == 5 ? 6 - 5 : 0; }), 9), 1.0 / 3);
  EXPECT_EQ(score(Pointing(8, copying), 4, {{"last_token", Text("label")}}), 2.0 / 3)
      << "no label, no step";
  sequence.label = 9;
  EXPECT_EQ(score(Pointing(8, copying), 4, {{"last_token", Text("label")}}), 1);
  sequence.needle.reset();
  EXPECT_TRUE(std::isnan(score(Pointing(8, copying), 9)));
}

TEST_F(AttentionPatternsTest, TheAnswersSlotIsATasksNeedle) {
  Sequence sequence = Tokens({5, 6, 7, 8});
  sequence.path = {3, 2};
  sequence.target = 1;
  const Matrix attention = Pointing(4, [](int64_t) { return 1; });
  EXPECT_EQ(Score("retrieval_head", {}, sequence, attention, 128, 6)["retrieval_score"], 1);
  EXPECT_EQ(Score("retrieval_head", {}, sequence, attention, 128, 5)["retrieval_score"], 0);
}

TEST(LogitGapTest, IsLargestMinusSecondLargest) {
  EXPECT_EQ(LargestGap({3, 1, 2.5}), 0.5);
  EXPECT_EQ(LargestGap({3, 3, 1}), 0);
  EXPECT_EQ(LargestGap({-5, -2}), 3);
  EXPECT_TRUE(std::isnan(LargestGap({1, kNone, 3})));
  EXPECT_EQ(GapOf({3, 1, 2.5}, 0), 0.5);
  EXPECT_EQ(GapOf({3, 1, 2.5}, 1), -2);
  EXPECT_TRUE(std::isnan(GapOf({1, HUGE_VAL}, 0)));
}

}  // namespace
}  // namespace hopscope::engine

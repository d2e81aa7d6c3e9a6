#include "client/cli/layer_table.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "absl/strings/str_split.h"
#include "client/cli/test_events.h"
#include "client/cli/text_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ScoreEstimate Estimate(const std::vector<double>& values) {
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {static_cast<int64_t>(values.size()), mean, std::sqrt(squares / (n - 1) / n)};
}

TEST(PoolTest, GivesWhatAllItemsTogetherWouldGive) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(0.5, 0.2);
  std::vector<double> all;
  std::vector<ScoreEstimate> parts;
  for (const int size : {2, 50, 7, 300}) {
    std::vector<double> part(size);
    for (double& value : part) value = normal(random) + 0.1 * size;
    all.insert(all.end(), part.begin(), part.end());
    parts.push_back(Estimate(part));
  }
  const ScoreEstimate pooled = Pool(parts);
  const ScoreEstimate direct = Estimate(all);
  EXPECT_EQ(pooled.items, direct.items);
  EXPECT_NEAR(pooled.mean, direct.mean, 1e-12);
  EXPECT_NEAR(pooled.standard_error, direct.standard_error, 1e-12);
}

TEST(PoolTest, PartsWithoutItemsOrWithOneCountForWhatTheyAre) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const ScoreEstimate pooled = Pool({{0, nan, nan}, {1, 0.2, nan}, {1, 0.4, nan}});
  EXPECT_EQ(pooled.items, 2);
  EXPECT_NEAR(pooled.mean, 0.3, 1e-12);
  EXPECT_NEAR(pooled.standard_error, Estimate({0.2, 0.4}).standard_error, 1e-12);
  EXPECT_EQ(Pool({{0, nan, nan}}).items, 0);
  EXPECT_TRUE(std::isnan(Pool({{1, 0.2, nan}}).standard_error));
}

TEST(LayerTableTest, LayersGoDownAndAddedTokensAcross) {
  std::vector<v1::HeadScores> scores;
  for (const int added : {0, 50}) {
    scores.push_back(
        MakeScores(MakeCell(0, 1, added), "positional", 4, 1, {0.95, 0.05, 0.95, 0.5}));
    scores.push_back(MakeScores(MakeCell(0, 1, added), "symbolic", 4, 1, {0.05, 0.95, 0.95, 0.5}));
  }
  EXPECT_THAT(
      LayerTables(scores, {}),
      ElementsAre("Positional and symbolic scores: number, number/step-06750, hops 1\n"
                  "  queries=last tau=0.0001\n"
                  "  mean ± standard error over n sequences; labels at gamma 0.10\n"
                  "         +0, n=100                          +50, n=100\n"
                  "  layer  positional    symbolic      label  positional    symbolic      label\n"
                  "      0  0.950 ±0.010  0.050 ±0.010  pos    0.950 ±0.010  0.050 ±0.010  pos\n"
                  "      1  0.050 ±0.010  0.950 ±0.010  sym    0.050 ±0.010  0.950 ±0.010  sym\n"
                  "      2  0.950 ±0.010  0.950 ±0.010  dif    0.950 ±0.010  0.950 ±0.010  dif\n"
                  "      3  0.500 ±0.010  0.500 ±0.010  mix    0.500 ±0.010  0.500 ±0.010  mix\n"));
}

TEST(LayerTableTest, HopsArePooledUnlessAskedNotTo) {
  std::vector<v1::HeadScores> scores;
  for (const int hops : {1, 2, 3}) {
    scores.push_back(MakeScores(MakeCell(0, hops, 0), "positional", 1, 1, {hops == 3 ? 0.6 : 0.9}));
    scores.push_back(MakeScores(MakeCell(0, hops, 0), "symbolic", 1, 1, {0.1}));
  }
  const auto pooled = LayerTables(scores, {});
  ASSERT_EQ(pooled.size(), 1u);
  EXPECT_THAT(pooled[0], HasSubstr("pooled over hops 1, 2, 3\n"));
  EXPECT_THAT(pooled[0], HasSubstr("+0, n=300\n"));
  EXPECT_THAT(pooled[0], HasSubstr("      0  0.800 ±0.010"));
  const auto by_hops = LayerTables(scores, {.by_hops = true});
  ASSERT_EQ(by_hops.size(), 3u);
  EXPECT_THAT(by_hops[2], HasSubstr("0.600 ±0.010"));
}

TEST(LayerTableTest, SeveralHeadsShowTheirMeanAndHowManyAreWhat) {
  const std::vector<v1::HeadScores> scores = {
      MakeScores(MakeCell(0, 1, 0), "positional", 2, 3, {0.95, 0.97, 0.05, 0.5, 0.5, 0.5}),
      MakeScores(MakeCell(0, 1, 0), "symbolic", 2, 3, {0.05, 0.03, 0.95, 0.5, 0.5, 0.5})};
  const auto mean = LayerTables(scores, {});
  ASSERT_EQ(mean.size(), 1u);
  EXPECT_THAT(mean[0], HasSubstr("mean over heads ± mean of their standard errors"));
  EXPECT_THAT(mean[0], HasSubstr("      0  0.657 ±0.010  0.343 ±0.010  2 pos 1 sym\n"));
  EXPECT_THAT(mean[0], HasSubstr("      1  0.500 ±0.010  0.500 ±0.010  3 mix\n"));
  const auto per_head = LayerTables(scores, {.per_head = true});
  EXPECT_THAT(per_head[0], HasSubstr("  layer  head  positional    symbolic      label\n"));
  EXPECT_THAT(per_head[0], HasSubstr("      0     2  0.050 ±0.010  0.950 ±0.010  sym\n"));
}

TEST(LayerTableTest, HopStepsHaveRowsAndAreNotPooled) {
  std::vector<v1::HeadScores> scores;
  for (const int hops : {1, 2}) {
    for (const char* metric : {"positional", "symbolic"}) {
      v1::HeadScores score =
          MakeScores(MakeCell(0, hops, 0), metric, 1, 1, std::vector<double>(hops, 0.5));
      score.set_steps(hops);
      scores.push_back(score);
    }
  }
  const auto tables = LayerTables(scores, {});
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_THAT(tables[1], HasSubstr("  step  layer  positional"));
  EXPECT_THAT(tables[1], HasSubstr("     1      0  0.500"));
}

TEST(LayerTableTest, EachTauHasItsTable) {
  std::vector<v1::HeadScores> scores;
  for (const double tau : {1e-4, 0.05}) {
    for (const char* metric : {"positional", "symbolic"}) {
      v1::HeadScores score = MakeScores(MakeCell(0, 1, 0), metric, 1, 1, {0.5});
      (*score.mutable_params()->mutable_fields())["tau"].set_number_value(tau);
      scores.push_back(score);
    }
  }
  EXPECT_EQ(LayerTables(scores, {}).size(), 2u);
}

TEST(LayerTableTest, ItemsWithoutAScoreAreNotHidden) {
  v1::HeadScores positional = MakeScores(MakeCell(0, 1, 0), "positional", 2, 1, {0.5, 0.5});
  v1::HeadScores symbolic = MakeScores(MakeCell(0, 1, 0), "symbolic", 2, 1, {0.5, 0.5});
  for (v1::HeadScores* score : {&positional, &symbolic}) {
    score->set_items(1, 0);
    score->set_mean(1, std::numeric_limits<double>::quiet_NaN());
    score->set_standard_error(1, std::numeric_limits<double>::quiet_NaN());
  }
  const auto tables = LayerTables({positional, symbolic}, {});
  EXPECT_THAT(tables[0], HasSubstr("+0, n=0-100\n"));
  EXPECT_THAT(tables[0], HasSubstr("      1  -"));
}

TEST(LayerTableTest, EachGammaHasItsLabel) {
  const std::vector<v1::HeadScores> scores = {
      MakeScores(MakeCell(0, 1, 0), "positional", 2, 1, {0.85, 0.5}),
      MakeScores(MakeCell(0, 1, 0), "symbolic", 2, 1, {0.05, 0.5})};
  const auto tables = LayerTables(scores, {.gammas = {0.1, 0.2}});
  EXPECT_THAT(tables[0], HasSubstr("labels at gamma 0.10 | 0.20\n"));
  EXPECT_THAT(tables[0], HasSubstr("      0  0.850 ±0.010  0.050 ±0.010  mix | pos\n"));
  EXPECT_THAT(tables[0], HasSubstr("      1  0.500 ±0.010  0.500 ±0.010  mix | mix\n"));
}

TEST(LayerTableTest, SwapsThatMoveTooLittleGiveNoLabel) {
  std::vector<v1::HeadScores> scores = {
      MakeScores(MakeCell(0, 1, 0), "positional", 3, 1, {0.95, 0.95, 0.95}),
      MakeScores(MakeCell(0, 1, 0), "symbolic", 3, 1, {0.05, 0.05, 0.05}),
      MakeScores(MakeCell(0, 1, 0), "swapped_mass", 3, 1, {0.5, 0.001, 0.5}),
      MakeScores(MakeCell(0, 1, 0), "contrast", 3, 1, {0.5, 0.5, 0.05})};
  const auto tables = LayerTables(scores, {});
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_THAT(tables[0], HasSubstr("      0  0.950 ±0.010  0.050 ±0.010  pos\n"));
  EXPECT_THAT(tables[0], HasSubstr("      1  0.950 ±0.010  0.050 ±0.010  ???\n"));
  EXPECT_THAT(tables[0], HasSubstr("      2  0.950 ±0.010  0.050 ±0.010  ???\n"));
}

TEST(LayerTableTest, ContentsThatHoldTheirPositionHaveNoLabel) {
  std::vector<v1::HeadScores> scores = {MakeScores(MakeCell(0, 1, 0), "positional", 1, 1, {0.05}),
                                        MakeScores(MakeCell(0, 1, 0), "symbolic", 1, 1, {1})};
  for (v1::HeadScores& score : scores) score.add_flags("position_in_content");
  const auto tables = LayerTables(scores, {});
  EXPECT_THAT(tables[0], HasSubstr("no labels: the model's contents hold their positions"));
  EXPECT_THAT(tables[0], HasSubstr("      0  0.050 ±0.010  1.000 ±0.010\n"));
}

TEST(LayerTableTest, FitsItsWidth) {
  std::vector<v1::HeadScores> scores;
  for (int added = 0; added < 5; ++added) {
    scores.push_back(MakeScores(MakeCell(0, 1, added * 100), "positional", 2, 1, {0.5, 0.5}));
    scores.push_back(MakeScores(MakeCell(0, 1, added * 100), "symbolic", 2, 1, {0.5, 0.5}));
  }
  const std::vector<std::string> tables = LayerTables(scores, {.width = 100});
  ASSERT_EQ(tables.size(), 1u);
  for (absl::string_view line : absl::StrSplit(tables[0], '\n')) {
    EXPECT_LE(DisplayWidth(line), 100u) << line;
  }
}

TEST(LayerTableTest, OtherScoresAndBrokenOnesAreLeftOut) {
  v1::HeadScores other = MakeScores(MakeCell(0, 1, 0), "positional", 1, 1, {0.5});
  other.set_scorer("attention_entropy");
  v1::HeadScores broken = MakeScores(MakeCell(0, 1, 0), "positional", 3, 7, {0.5});
  EXPECT_THAT(LayerTables({other, broken}, {}), ElementsAre());
}

}  // namespace
}  // namespace hopscope::cli

#include "server/jobs/merge.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::jobs {
namespace {

using ::testing::DoubleNear;
using ::testing::IsNan;
using ::testing::SizeIs;

// The result of a unit with one metric of two heads, whose items have these values (the second
// head: their negatives).
v1::UnitResult UnitOf(const std::vector<double>& values, int64_t correct = 0) {
  v1::UnitResult result;
  result.set_items(static_cast<int64_t>(values.size()));
  result.set_correct(correct);
  v1::ScoreMoments* score = result.add_scores();
  score->set_scorer("positional_symbolic");
  score->set_metric("positional");
  score->set_layers(1);
  score->set_heads(2);
  const double mean = values.empty() ? 0
                                     : std::accumulate(values.begin(), values.end(), 0.0) /
                                           static_cast<double>(values.size());
  double m2 = 0;
  for (const double value : values) m2 += (value - mean) * (value - mean);
  for (const double sign : {1.0, -1.0}) {
    score->add_count(static_cast<int64_t>(values.size()));
    score->add_mean(sign * mean);
    score->add_m2(m2);
  }
  return result;
}

TEST(MergeTest, MergedMomentsAreThoseOfAllItems) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal(1e3,
                                          1);  // far from 0, where a naive sum of squares fails
  std::vector<double> all;
  v1::UnitResult merge;
  int64_t correct = 0;
  for (const int size : {1, 7, 100, 2, 33}) {
    std::vector<double> values;
    for (int i = 0; i < size; ++i) values.push_back(normal(random));
    all.insert(all.end(), values.begin(), values.end());
    correct += size / 2;
    ASSERT_TRUE(MergeUnit(UnitOf(values, size / 2), merge).ok());
  }
  const v1::UnitResult expected = UnitOf(all, correct);
  EXPECT_EQ(merge.items(), 143);
  EXPECT_EQ(merge.correct(), correct);
  for (const int head : {0, 1}) {
    EXPECT_EQ(merge.scores(0).count(head), 143);
    EXPECT_THAT(merge.scores(0).mean(head), DoubleNear(expected.scores(0).mean(head), 1e-9));
    EXPECT_THAT(merge.scores(0).m2(head), DoubleNear(expected.scores(0).m2(head), 1e-6));
  }
}

TEST(MergeTest, AnEmptySideLeavesTheOtherAsItIs) {
  v1::UnitResult empty;
  empty.set_items_failed(5);
  const v1::UnitResult unit = UnitOf({0.1, 0.7});
  v1::UnitResult merge;
  ASSERT_TRUE(MergeUnit(empty, merge).ok());
  ASSERT_TRUE(MergeUnit(unit, merge).ok());
  ASSERT_TRUE(MergeUnit(empty, merge).ok());
  EXPECT_EQ(merge.items(), 2);
  EXPECT_EQ(merge.items_failed(), 10);
  EXPECT_EQ(merge.scores(0).SerializeAsString(), unit.scores(0).SerializeAsString());
}

// The same with the extremes of these values.
v1::UnitResult UnitWithExtremes(const std::vector<double>& values) {
  v1::UnitResult result = UnitOf(values);
  v1::ScoreMoments& score = *result.mutable_scores(0);
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  score.add_min(*min);
  score.add_min(-*max);
  score.add_max(*max);
  score.add_max(-*min);
  return result;
}

TEST(MergeTest, ExtremesAreThoseOfAllItems) {
  v1::UnitResult merge;
  for (const auto& values : std::vector<std::vector<double>>{{0.5, 0.7}, {-3, 0.1}, {0.6}, {9}}) {
    ASSERT_TRUE(MergeUnit(UnitWithExtremes(values), merge).ok());
  }
  EXPECT_THAT(merge.scores(0).min(), ::testing::ElementsAre(-3, -9));
  EXPECT_THAT(merge.scores(0).max(), ::testing::ElementsAre(9, 3));
  const std::vector<v1::HeadScores> heads = SummariseHeads(merge, v1::Cell());
  EXPECT_THAT(heads[0].min(), ::testing::ElementsAre(-3, -9));
  EXPECT_THAT(heads[0].max(), ::testing::ElementsAre(9, 3));
  EXPECT_FALSE(CheckMergeable(merge, UnitOf({1})).ok()) << "one side has none";
}

TEST(MergeTest, HeadsWithoutValuesHaveNoExtremes) {
  v1::UnitResult first = UnitWithExtremes({5});
  first.mutable_scores(0)->set_count(1, 0);
  v1::UnitResult merge;
  ASSERT_TRUE(MergeUnit(first, merge).ok());
  EXPECT_THAT(SummariseHeads(merge, v1::Cell())[0].min(), ::testing::ElementsAre(5, IsNan()));
  ASSERT_TRUE(MergeUnit(UnitWithExtremes({7}), merge).ok());
  EXPECT_THAT(merge.scores(0).min(), ::testing::ElementsAre(5, -7));
  EXPECT_THAT(merge.scores(0).max(), ::testing::ElementsAre(7, -7));
}

TEST(MergeTest, HeadsWithoutValuesTakeWhatComes) {
  v1::UnitResult first = UnitOf({0.5});
  first.mutable_scores(0)->set_count(1, 0);
  first.mutable_scores(0)->set_mean(1, std::nan(""));
  v1::UnitResult merge;
  ASSERT_TRUE(MergeUnit(first, merge).ok());
  ASSERT_TRUE(MergeUnit(UnitOf({0.25}), merge).ok());
  ASSERT_TRUE(MergeUnit(first, merge).ok());
  EXPECT_EQ(merge.scores(0).count(0), 3);
  EXPECT_EQ(merge.scores(0).count(1), 1);
  EXPECT_EQ(merge.scores(0).mean(1), -0.25);
}

TEST(MergeTest, DifferentMetricsDoNotMix) {
  const v1::UnitResult base = UnitOf({0.5});
  std::vector<v1::UnitResult> others(5, base);
  others[0].mutable_scores(0)->set_metric("symbolic");
  others[1].mutable_scores(0)->set_heads(1);
  (*others[2].mutable_scores(0)->mutable_params()->mutable_fields())["tau"].set_number_value(1);
  *others[3].add_scores() = base.scores(0);
  others[4].mutable_scores(0)->add_mean(1);
  for (const v1::UnitResult& other : others) {
    v1::UnitResult merge = base;
    EXPECT_EQ(MergeUnit(other, merge).code(), absl::StatusCode::kInternal);
    EXPECT_EQ(merge.SerializeAsString(), base.SerializeAsString());
  }
}

TEST(MergeTest, ExamplesOfFailedItemsAreFew) {
  v1::UnitResult merge;
  for (int unit = 0; unit < 10; ++unit) {
    v1::UnitResult result;
    result.set_items_failed(1);
    result.add_item_failures()->set_item(unit);
    ASSERT_TRUE(MergeUnit(result, merge).ok());
  }
  EXPECT_EQ(merge.items_failed(), 10);
  ASSERT_THAT(merge.item_failures(), SizeIs(4));
  EXPECT_EQ(merge.item_failures(3).item(), 3);
}

v1::CellResult Answers(int64_t items, int64_t correct) {
  v1::CellResult result;
  SummariseAnswers(items, /*items_failed=*/3, correct, /*items_unlabelled=*/0, result);
  EXPECT_EQ(result.items(), items);
  EXPECT_EQ(result.items_failed(), 3);
  EXPECT_EQ(result.correct(), correct);
  return result;
}

TEST(MergeTest, AccuracyHasItsStandardErrorAndInterval) {
  const v1::CellResult result = Answers(100, 80);
  EXPECT_DOUBLE_EQ(result.accuracy(), 0.8);
  // s^2 = 100/99 * 0.16; standard error = s / 10.
  EXPECT_NEAR(result.standard_error(), 0.040201512610368484, 1e-15);
  // Wilson's interval of 80 out of 100, from its quadratic: (p - x)^2 = z^2 x (1 - x) / n.
  const double z2_over_n = 1.959963984540054 * 1.959963984540054 / 100;
  for (const double end : {result.ci_low(), result.ci_high()}) {
    EXPECT_NEAR((0.8 - end) * (0.8 - end), z2_over_n * end * (1 - end), 1e-15);
  }
  EXPECT_NEAR(result.ci_low(), 0.7111708, 1e-6);
  EXPECT_NEAR(result.ci_high(), 0.8666331, 1e-6);
}

TEST(MergeTest, TheEndsOfTheIntervalAreExact) {
  EXPECT_EQ(Answers(50, 0).ci_low(), 0);
  EXPECT_NEAR(Answers(50, 0).ci_high(), 0.0713476, 1e-6);
  EXPECT_EQ(Answers(50, 50).ci_high(), 1);
  EXPECT_EQ(Answers(50, 50).standard_error(), 0);
  EXPECT_FALSE(Answers(1, 1).has_standard_error());
  EXPECT_EQ(Answers(1, 1).accuracy(), 1);
  const v1::CellResult none = Answers(0, 0);
  EXPECT_EQ(none.accuracy(), 0);
  EXPECT_FALSE(none.has_standard_error());
}

TEST(MergeTest, HeadsHaveTheirStandardErrors) {
  v1::UnitResult merge = UnitOf({1, 2, 3, 6});
  merge.mutable_scores(0)->set_count(1, 0);
  v1::Cell cell;
  cell.set_index(3);
  std::vector<v1::HeadScores> heads = SummariseHeads(merge, cell);
  ASSERT_THAT(heads, SizeIs(1));
  EXPECT_EQ(heads[0].cell().index(), 3);
  EXPECT_EQ(heads[0].scorer(), "positional_symbolic");
  EXPECT_EQ(heads[0].metric(), "positional");
  EXPECT_EQ(heads[0].layers(), 1);
  EXPECT_EQ(heads[0].heads(), 2);
  EXPECT_EQ(heads[0].items(0), 4);
  EXPECT_DOUBLE_EQ(heads[0].mean(0), 3);
  // Squared deviations 4 + 1 + 0 + 9 = 14; s^2 = 14/3; / 4.
  EXPECT_DOUBLE_EQ(heads[0].standard_error(0), std::sqrt(14.0 / 3 / 4));
  EXPECT_EQ(heads[0].items(1), 0);
  EXPECT_THAT(heads[0].mean(1), IsNan());
  EXPECT_THAT(heads[0].standard_error(1), IsNan());
  heads = SummariseHeads(UnitOf({1}), cell);
  EXPECT_EQ(heads[0].mean(0), 1);
  EXPECT_THAT(heads[0].standard_error(0), IsNan());
}

}  // namespace
}  // namespace hopscope::jobs

#include "client/cli/metric_table.h"

#include <algorithm>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/test_events.h"
#include "client/cli/text_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

v1::HeadScores Metric(const std::string& scorer, const std::string& metric, int32_t hops,
                      int32_t layers, int32_t heads, const std::vector<double>& means) {
  v1::HeadScores scores = MakeScores(MakeCell(0, hops, 0), metric, layers, heads, means);
  scores.set_scorer(scorer);
  scores.mutable_params()->clear_fields();
  return scores;
}

// The words of the line that begins with these.
std::string LineOf(const std::string& table, const std::string& start) {
  for (const auto& line : absl::StrSplit(table, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    const std::string text = absl::StrJoin(words, " ");
    if (absl::StartsWith(text, start)) return text;
  }
  return "no line " + start;
}

TEST(MetricTableTest, MetricsGoAcrossAndLayersDown) {
  const auto tables =
      MetricTables({Metric("attention_stats", "entropy", 1, 2, 2, {1, 2, 3, 5}),
                    Metric("attention_stats", "sink_mass", 1, 2, 2, {0.1, 0.3, 0.5, 0.5})},
                   {});
  ASSERT_THAT(tables, SizeIs(1));
  EXPECT_THAT(tables[0], HasSubstr("attention_stats: number"));
  EXPECT_EQ(LineOf(tables[0], "layer"), "layer entropy sink_mass");
  EXPECT_EQ(LineOf(tables[0], "0"),
            "0 1.500 \xc2\xb1"
            "0.010 0.200 \xc2\xb1"
            "0.010");
  EXPECT_EQ(LineOf(tables[0], "1"),
            "1 4.000 \xc2\xb1"
            "0.010 0.500 \xc2\xb1"
            "0.010");
  const auto heads = MetricTables({Metric("attention_stats", "entropy", 1, 2, 2, {1, 2, 3, 5})},
                                  {.per_head = true});
  EXPECT_EQ(LineOf(heads[0], "1 1"),
            "1 1 5.000 \xc2\xb1"
            "0.010");
}

TEST(MetricTableTest, TheWorstCaseStandsBesideTheMean) {
  v1::HeadScores one = Metric("logit_gap", "gap", 1, 1, 2, {2, 4});
  v1::HeadScores two = Metric("logit_gap", "gap", 2, 1, 2, {2, 4});
  for (const double value : {0.5, 0.25}) {
    one.add_min(value);
    one.add_max(9);
    two.add_min(-value);
    two.add_max(9);
  }
  const auto tables = MetricTables({one, two}, {});
  ASSERT_THAT(tables, SizeIs(1)) << "pooled over hops";
  EXPECT_EQ(LineOf(tables[0], "layer"), "layer gap min gap");
  EXPECT_THAT(LineOf(tables[0], "0"), HasSubstr("-0.500"));
  EXPECT_THAT(MetricTables({one, two}, {.by_hops = true}), SizeIs(2));
}

TEST(MetricTableTest, PlanesAreShownByTheirPeakAndWeightedId) {
  v1::HeadScores logits = Metric("frequency_use", "max_logit", 1, 1, 1, {1, 80, 2});
  logits.set_planes(3);
  const auto tables = MetricTables({logits}, {});
  ASSERT_THAT(tables, SizeIs(1));
  EXPECT_EQ(LineOf(tables[0], "layer"), "layer max_logit peak weighted ID");
  EXPECT_EQ(LineOf(tables[0], "0"), "0 80.000 at 2 2.00");
}

TEST(MetricTableTest, WhatDoesNotFitGoesBelow) {
  std::vector<v1::HeadScores> scores;
  for (const char* metric : {"entropy", "norm_entropy", "sink_mass", "self_mass", "max_weight"}) {
    scores.push_back(Metric("attention_stats", metric, 1, 1, 1, {0.5}));
  }
  const auto tables = MetricTables(scores, {.width = 60});
  ASSERT_THAT(tables, SizeIs(1));
  for (const auto& line : absl::StrSplit(tables[0], '\n')) {
    if (absl::StrContains(line, "number/")) continue;  // the title
    EXPECT_LE(DisplayWidth(line), 60u) << line;
  }
  for (const v1::HeadScores& score : scores) EXPECT_THAT(tables[0], HasSubstr(score.metric()));
}

TEST(MetricTableTest, WhatHasNoValueIsADash) {
  v1::HeadScores gap = Metric("logit_gap", "target_gap", 1, 1, 1, {0});
  gap.set_mean(0, std::numeric_limits<double>::quiet_NaN());
  gap.set_items(0, 0);
  gap.add_min(std::numeric_limits<double>::quiet_NaN());
  gap.add_max(std::numeric_limits<double>::quiet_NaN());
  const auto tables = MetricTables({gap}, {});
  ASSERT_THAT(tables, SizeIs(1));
  EXPECT_EQ(LineOf(tables[0], "0"), "0 - -");
}

TEST(MetricTableTest, OtherScoresAreLeftOut) {
  v1::HeadScores broken = Metric("logit_gap", "gap", 1, 3, 7, {0.5});
  EXPECT_THAT(MetricTables({MakeScores(MakeCell(0, 1, 0), "positional", 1, 1, {0.5}), broken}, {}),
              SizeIs(0));
  EXPECT_FALSE(IsMetricScore(MakeScores(MakeCell(0, 1, 0), "positional", 1, 1, {0.5})));
}

}  // namespace
}  // namespace hopscope::cli

#include "worker/engine/scorers/moments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace hopscope::engine {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

MetricTable Table(const std::vector<std::vector<double>>& items) {
  MetricTable table("positional", {}, {.layers = 1, .heads = 2},
                    static_cast<int64_t>(items.size()));
  for (size_t i = 0; i < items.size(); ++i) {
    std::copy(items[i].begin(), items[i].end(), table.item(static_cast<int64_t>(i)));
  }
  return table;
}

TEST(MomentsTest, AreCountMeanAndSquaredDeviationsOfEachCell) {
  const ItemFailures failures(4);
  const v1::ScoreMoments moments =
      MomentsOf("positional_symbolic", Table({{1, 5}, {2, 5}, {4, 5}, {9, 5}}), failures);
  EXPECT_EQ(moments.scorer(), "positional_symbolic");
  EXPECT_EQ(moments.metric(), "positional");
  EXPECT_EQ(moments.layers(), 1);
  EXPECT_EQ(moments.heads(), 2);
  EXPECT_EQ(moments.planes(), 0);
  EXPECT_THAT(moments.count(), ElementsAre(4, 4));
  EXPECT_THAT(moments.mean(), ElementsAre(DoubleNear(4, 1e-14), 5));
  EXPECT_THAT(moments.m2(), ElementsAre(DoubleNear(38, 1e-13), 0));
}

TEST(MomentsTest, LeaveOutFailedItemsAndCellsWithoutValue) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  ItemFailures failures(3);
  failures.Fail(1, "a logit is NaN");
  const v1::ScoreMoments moments =
      MomentsOf("positional_symbolic", Table({{1, none}, {100, 100}, {2, none}}), failures);
  EXPECT_THAT(moments.count(), ElementsAre(2, 0));
  EXPECT_THAT(moments.mean(), ElementsAre(1.5, 0));
  EXPECT_THAT(moments.m2(), ElementsAre(0.5, 0));
}

TEST(MomentsTest, ExtremesComeWhereAMetricAsksForThem) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::vector<double>> items = {{-4, none, 0}, {2, 7, 0}, {-9, 9, 0}, {3, 8, 0}};
  MetricTable table("gap", {}, {.layers = 1, .heads = 3}, 4, /*extremes=*/true);
  for (int64_t i = 0; i < 4; ++i) {
    std::copy(items[i].begin(), items[i].end(), table.item(i));
    table.item(i)[2] = none;
  }
  ItemFailures failures(4);
  failures.Fail(2, "a logit is NaN");
  const v1::ScoreMoments moments = MomentsOf("logit_gap", table, failures);
  EXPECT_THAT(moments.min(), ElementsAre(-4, 7, 0));
  EXPECT_THAT(moments.max(), ElementsAre(3, 8, 0));
  EXPECT_EQ(MomentsOf("x", Table({{1, 2}}), ItemFailures(1)).min_size(), 0);
}

TEST(MomentsTest, SmallDeviationsFromALargeMeanAreKept) {
  const ItemFailures failures(3);
  const v1::ScoreMoments moments =
      MomentsOf("x", Table({{1e9, 0}, {1e9 + 1, 0}, {1e9 + 2, 0}}), failures);
  EXPECT_THAT(moments.m2(), ElementsAre(DoubleNear(2, 1e-6), 0));
}

}  // namespace
}  // namespace hopscope::engine

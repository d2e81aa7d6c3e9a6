#include "common/scores/weighted_id.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace hopscope::scores {
namespace {

double Of(const std::vector<double>& logits) {
  return WeightedId(logits.data(), static_cast<int64_t>(logits.size()));
}

TEST(WeightedIdTest, CountsFromTheFastestPlaneAsOne) {
  EXPECT_DOUBLE_EQ(Of({50, 0, 0}), 1);
  EXPECT_DOUBLE_EQ(Of({0, 0, 1000}), 3);
  EXPECT_DOUBLE_EQ(Of({2, 2, 2, 2, 2}), 3);
  EXPECT_NEAR(Of({std::log(1), std::log(3)}), 1.75, 1e-15);
}

TEST(WeightedIdTest, IsOneNumberHoweverLargeTheLogitsAre) {
  EXPECT_NEAR(Of({1e6, 1e6 + std::log(3)}), 1.75, 1e-9);
  EXPECT_NEAR(Of({-1e6, -1e6 + std::log(3)}), 1.75, 1e-9);
}

TEST(WeightedIdTest, NothingComesOfNothing) {
  EXPECT_TRUE(std::isnan(Of({})));
  EXPECT_TRUE(std::isnan(Of({1, std::nan("")})));
  EXPECT_TRUE(std::isnan(Of({1, std::numeric_limits<double>::infinity()})));
}

}  // namespace
}  // namespace hopscope::scores

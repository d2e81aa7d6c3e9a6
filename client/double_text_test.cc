#include "client/double_text.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "gtest/gtest.h"

namespace hopscope::client {
namespace {

TEST(DoubleTextTest, IsShort) {
  EXPECT_EQ(DoubleText(0.1), "0.1");
  EXPECT_EQ(DoubleText(42), "42");
  EXPECT_EQ(DoubleText(0), "0");
  EXPECT_EQ(DoubleText(-0.25), "-0.25");
  EXPECT_EQ(DoubleText(1e-4), "1e-04");
}

TEST(DoubleTextTest, ReadsBackAsTheSameNumber) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-300, 300);
  for (int i = 0; i < 10'000; ++i) {
    const double value =
        std::uniform_real_distribution<double>(-1, 1)(random) * std::pow(10, exponent(random));
    EXPECT_EQ(std::strtod(DoubleText(value).c_str(), nullptr), value);
  }
  for (const double value : {std::numeric_limits<double>::min(), std::numeric_limits<double>::max(),
                             std::numeric_limits<double>::denorm_min(), 1.0 / 3.0}) {
    EXPECT_EQ(std::strtod(DoubleText(value).c_str(), nullptr), value);
  }
}

}  // namespace
}  // namespace hopscope::client

#include "client/cli/number_text.h"

#include <cmath>

#include "gtest/gtest.h"

namespace hopscope::cli {
namespace {

TEST(NumberTextTest, GroupsDigits) {
  EXPECT_EQ(Count(0), "0");
  EXPECT_EQ(Count(999), "999");
  EXPECT_EQ(Count(1000), "1,000");
  EXPECT_EQ(Count(1234567), "1,234,567");
  EXPECT_EQ(Count(-123456), "-123,456");
  EXPECT_EQ(Counted(1, "cell"), "1 cell");
  EXPECT_EQ(Counted(1200, "cell"), "1,200 cells");
}

TEST(NumberTextTest, FixedDigits) {
  EXPECT_EQ(Fixed(0.98765, 4), "0.9877");
  EXPECT_EQ(Fixed(std::nan(""), 4), "-");
}

TEST(NumberTextTest, ScalesByThousands) {
  EXPECT_EQ(Scaled(0), "0");
  EXPECT_EQ(Scaled(12), "12");
  EXPECT_EQ(Scaled(999), "999");
  EXPECT_EQ(Scaled(999.6), "1.00 k");
  EXPECT_EQ(Scaled(2.051e12), "2.05 T");
  EXPECT_EQ(Scaled(20.51e12), "20.5 T");
  EXPECT_EQ(Scaled(205.1e12), "205 T");
  EXPECT_EQ(Scaled(1e30), "1000000000000 E");
}

TEST(NumberTextTest, Times) {
  EXPECT_EQ(ClockText(absl::Seconds(7)), "0:07");
  EXPECT_EQ(ClockText(absl::Seconds(59.6)), "1:00");
  EXPECT_EQ(ClockText(absl::Seconds(754)), "12:34");
  EXPECT_EQ(ClockText(absl::Seconds(3723)), "1:02:03");
  EXPECT_EQ(ClockText(absl::InfiniteDuration()), "-");
  google::protobuf::Timestamp time;
  EXPECT_EQ(TimeText(time), "-");
  time.set_seconds(1769847300);
  EXPECT_EQ(TimeText(time), "2026-01-31 08:15:00 UTC");
}

}  // namespace
}  // namespace hopscope::cli

#include "server/jobs/progress_meter.h"

#include <optional>

#include "gtest/gtest.h"

namespace hopscope::jobs {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

TEST(ProgressMeterTest, AnEventIsDueOnceASecondAndJob) {
  ProgressMeter meter;
  int a = 0;
  for (int i = 1; i <= 40; ++i) {
    a += meter.Record("a", kStart, kStart + absl::Milliseconds(100) * i, i).has_value() ? 1 : 0;
  }
  EXPECT_EQ(a, 4);  // after 0.1, 1.1, 2.1 and 3.1 s
  EXPECT_TRUE(meter.Record("b", kStart, kStart + absl::Seconds(4), 1).has_value());
}

TEST(ProgressMeterTest, TheRateIsThatOfTheLastSeconds) {
  ProgressMeter meter;
  // 100 items a second for 20 s, then 10 a second.
  int64_t items = 0;
  std::optional<double> rate;
  for (int second = 1; second <= 20; ++second) {
    items += 100;
    rate = meter.Record("a", kStart, kStart + absl::Seconds(second), items);
    ASSERT_TRUE(rate.has_value());
    EXPECT_DOUBLE_EQ(*rate, 100);
  }
  for (int second = 21; second <= 30; ++second) {
    items += 10;
    rate = meter.Record("a", kStart, kStart + absl::Seconds(second), items);
  }
  EXPECT_DOUBLE_EQ(*rate, 10);
}

TEST(ProgressMeterTest, AForgottenJobBeginsAnew) {
  ProgressMeter meter;
  EXPECT_TRUE(meter.Record("a", kStart, kStart + absl::Seconds(1), 5).has_value());
  EXPECT_FALSE(meter.Record("a", kStart, kStart + absl::Seconds(1), 5).has_value());
  meter.Forget("a");
  EXPECT_DOUBLE_EQ(meter.Record("a", kStart, kStart + absl::Seconds(2), 5).value(), 2.5);
}

TEST(ProgressMeterTest, NoTimeIsNoRate) {
  ProgressMeter meter;
  EXPECT_EQ(meter.Record("a", kStart, kStart, 5), 0);
}

}  // namespace
}  // namespace hopscope::jobs

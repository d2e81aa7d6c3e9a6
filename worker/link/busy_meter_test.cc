#include "worker/link/busy_meter.h"

#include "gtest/gtest.h"

namespace hopscope::link {
namespace {

TEST(BusyMeterTest, IsTheShareOfTheCapacityThatRuns) {
  common::FakeClock clock(absl::UnixEpoch());
  BusyMeter meter(&clock, 2);
  EXPECT_EQ(meter.Ratio(), 0);
  meter.BeginRun();
  clock.Advance(absl::Seconds(10));
  EXPECT_DOUBLE_EQ(meter.Ratio(), 0.5);
  meter.BeginRun();
  clock.Advance(absl::Seconds(10));
  EXPECT_DOUBLE_EQ(meter.Ratio(), 0.75);
  meter.EndRun();
  meter.EndRun();
  clock.Advance(absl::Seconds(10));
  EXPECT_DOUBLE_EQ(meter.Ratio(), 0.5);
}

TEST(BusyMeterTest, ForgetsWhatIsLongPast) {
  common::FakeClock clock(absl::UnixEpoch());
  BusyMeter meter(&clock, 1);
  meter.BeginRun();
  for (int i = 0; i < 100; ++i) {
    clock.Advance(absl::Milliseconds(700));
    meter.Ratio();
  }
  EXPECT_DOUBLE_EQ(meter.Ratio(), 1.0);
  meter.EndRun();
  for (int i = 0; i < 60; ++i) {
    clock.Advance(absl::Milliseconds(700));
    meter.Ratio();
  }
  EXPECT_EQ(meter.Ratio(), 0.0);
}

TEST(BusyMeterTest, NeedsNoCallsInBetween) {
  common::FakeClock clock(absl::UnixEpoch());
  BusyMeter meter(&clock, 1);
  clock.Advance(absl::Hours(1));
  meter.BeginRun();
  clock.Advance(absl::Hours(1));
  EXPECT_DOUBLE_EQ(meter.Ratio(), 1.0);
  meter.EndRun();
  clock.Advance(absl::Hours(1));
  EXPECT_DOUBLE_EQ(meter.Ratio(), 0.0);
}

}  // namespace
}  // namespace hopscope::link

#include "worker/link/prefetch.h"

#include "gtest/gtest.h"

namespace hopscope::link {
namespace {

TEST(PrefetchTest, HoldsOnlyWhatRunsWhileTheDurationIsUnknown) {
  EXPECT_EQ(Prefetch({.capacity = 1}).Target(), 1);
  EXPECT_EQ(Prefetch({.capacity = 3}).Target(), 3);
}

TEST(PrefetchTest, HoldsWorkForThePrefetchTime) {
  Prefetch prefetch({.capacity = 1, .time = absl::Milliseconds(500)});
  prefetch.Record(absl::Milliseconds(100));
  EXPECT_EQ(prefetch.Target(), 1 + 5);
}

TEST(PrefetchTest, CountsWithUnitsThatRunSideBySide) {
  Prefetch prefetch({.capacity = 2, .time = absl::Milliseconds(500)});
  prefetch.Record(absl::Milliseconds(250));
  EXPECT_EQ(prefetch.Target(), 2 + 4);
}

TEST(PrefetchTest, HoldsOneBeyondTheRunningOnesForUnitsOfAboutThePrefetchTime) {
  Prefetch prefetch({.capacity = 1, .time = absl::Milliseconds(500)});
  prefetch.Record(absl::Milliseconds(1500));
  EXPECT_EQ(prefetch.Target(), 2);
}

TEST(PrefetchTest, HoldsNothingBackWhenUnitsAreLong) {
  Prefetch prefetch({.capacity = 1, .time = absl::Milliseconds(500)});
  prefetch.Record(absl::Minutes(1));
  EXPECT_EQ(prefetch.Target(), 1);
}

TEST(PrefetchTest, IsBoundedForUnitsThatTakeNoTime) {
  Prefetch prefetch({.capacity = 1, .max_ahead = 7});
  prefetch.Record(absl::ZeroDuration());
  EXPECT_EQ(prefetch.Target(), 8);
}

TEST(PrefetchTest, FollowsUnitsThatBecomeLonger) {
  Prefetch prefetch({.capacity = 1, .time = absl::Milliseconds(500)});
  prefetch.Record(absl::Milliseconds(10));
  EXPECT_GT(prefetch.Target(), 10);
  for (int i = 0; i < 10; ++i) prefetch.Record(absl::Milliseconds(500));
  EXPECT_EQ(prefetch.Target(), 3);
  for (int i = 0; i < 10; ++i) prefetch.Record(absl::Seconds(60));
  EXPECT_EQ(prefetch.Target(), 1);
}

TEST(PrefetchTest, CanBeSwitchedOff) {
  Prefetch prefetch({.capacity = 2, .time = absl::ZeroDuration()});
  prefetch.Record(absl::Milliseconds(1));
  EXPECT_EQ(prefetch.Target(), 2);
}

}  // namespace
}  // namespace hopscope::link

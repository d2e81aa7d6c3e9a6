#include "worker/link/backoff.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace hopscope::link {
namespace {

TEST(BackoffTest, DoublesUpToItsMaximum) {
  Backoff backoff({.initial = absl::Milliseconds(100), .max = absl::Milliseconds(500)}, 1);
  for (const int bound_ms : {100, 200, 400, 500, 500, 500}) {
    const absl::Duration wait = backoff.Next();
    EXPECT_GE(wait, absl::Milliseconds(bound_ms) / 2);
    EXPECT_LE(wait, absl::Milliseconds(bound_ms));
  }
}

TEST(BackoffTest, StartsOverAfterASuccess) {
  Backoff backoff({.initial = absl::Milliseconds(100), .max = absl::Seconds(10)}, 1);
  for (int i = 0; i < 5; ++i) backoff.Next();
  backoff.Reset();
  EXPECT_LE(backoff.Next(), absl::Milliseconds(100));
}

TEST(BackoffTest, WorkersDoNotComeBackInStep) {
  Backoff one({}, 1), other({}, 2);
  EXPECT_NE(one.Next(), other.Next());
}

}  // namespace
}  // namespace hopscope::link

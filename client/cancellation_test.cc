#include "client/cancellation.h"

#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace hopscope::client {
namespace {

TEST(CancellationTest, HooksRunOnceOnCancel) {
  Cancellation cancellation;
  int runs = 0;
  const Cancellation::Hook hook(&cancellation, [&runs] { ++runs; });
  EXPECT_EQ(runs, 0);
  EXPECT_FALSE(cancellation.cancelled());
  cancellation.Cancel();
  cancellation.Cancel();
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(cancellation.cancelled());
}

TEST(CancellationTest, AHookThatComesLateRunsAtOnce) {
  Cancellation cancellation;
  cancellation.Cancel();
  int runs = 0;
  const Cancellation::Hook hook(&cancellation, [&runs] { ++runs; });
  EXPECT_EQ(runs, 1);
}

TEST(CancellationTest, AHookThatIsGoneDoesNotRun) {
  Cancellation cancellation;
  int runs = 0;
  {
    const Cancellation::Hook hook(&cancellation, [&runs] { ++runs; });
  }
  cancellation.Cancel();
  EXPECT_EQ(runs, 0);
}

TEST(CancellationTest, EndsAPauseOnAnotherThread) {
  Cancellation cancellation;
  std::thread canceller([&cancellation] { cancellation.Cancel(); });
  EXPECT_TRUE(cancellation.WaitFor(absl::Hours(1)));
  canceller.join();
  EXPECT_TRUE(cancellation.WaitFor(absl::Hours(1)));
}

TEST(CancellationTest, APauseEndsByItself) {
  Cancellation cancellation;
  EXPECT_FALSE(cancellation.WaitFor(absl::Milliseconds(1)));
  EXPECT_FALSE(cancellation.WaitFor(absl::ZeroDuration()));
}

TEST(CancellationTest, HooksMayComeAndGoWhileItIsCancelled) {
  for (int i = 0; i < 200; ++i) {
    Cancellation cancellation;
    std::thread canceller([&cancellation] { cancellation.Cancel(); });
    int runs = 0;
    {
      const Cancellation::Hook hook(&cancellation, [&runs] { ++runs; });
    }
    EXPECT_LE(runs, 1);
    canceller.join();
  }
}

}  // namespace
}  // namespace hopscope::client

#include "worker/link/termination_signals.h"

#include <signal.h>
#include <unistd.h>

#include <future>

#include "gtest/gtest.h"

namespace hopscope::link {
namespace {

TEST(TerminationSignalsTest, FirstSignalAsksToStop) {
  TerminationSignals::Block();
  std::promise<int> first;
  TerminationSignals signals([&first](int signal) { first.set_value(signal); });
  kill(getpid(), SIGINT);
  EXPECT_EQ(first.get_future().get(), SIGINT);
}

TEST(TerminationSignalsTest, EndsWithoutASignal) {
  TerminationSignals::Block();
  bool called = false;
  {
    TerminationSignals signals([&called](int) { called = true; });
  }
  EXPECT_FALSE(called);
}

TEST(TerminationSignalsDeathTest, SecondSignalExitsAtOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        TerminationSignals::Block();
        std::promise<void> first;
        TerminationSignals signals([&first](int) { first.set_value(); });
        kill(getpid(), SIGTERM);
        first.get_future().wait();
        kill(getpid(), SIGTERM);
        while (true) pause();
      },
      testing::ExitedWithCode(128 + SIGTERM), "");
}

}  // namespace
}  // namespace hopscope::link

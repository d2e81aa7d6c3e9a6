#include "server/rpc/executor.h"

#include <algorithm>
#include <future>
#include <vector>

#include "common/mutex.h"
#include "gtest/gtest.h"

namespace hopscope::rpc {
namespace {

TEST(Executor, RunsEveryTaskBeforeShutdownReturns) {
  common::Mutex mutex;
  int count = 0;
  Executor executor({.threads = 4, .max_queue = 1000});
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(executor.TrySubmit([&] {
      common::MutexLock lock(&mutex);
      ++count;
    }));
  }
  executor.Shutdown();
  EXPECT_EQ(count, 1000);
  EXPECT_FALSE(executor.TrySubmit([] {}));
}

TEST(Executor, RefusesWhatDoesNotFit) {
  Executor executor({.threads = 1, .max_queue = 2});
  std::promise<void> started;
  std::promise<void> release;
  ASSERT_TRUE(executor.TrySubmit([&] {
    started.set_value();
    release.get_future().wait();
  }));
  started.get_future().wait();
  EXPECT_TRUE(executor.TrySubmit([] {}));
  EXPECT_TRUE(executor.TrySubmit([] {}));
  EXPECT_FALSE(executor.TrySubmit([] {}));
  release.set_value();
  executor.Shutdown();
}

TEST(Executor, OneThreadKeepsTheOrder) {
  std::vector<int> order;
  Executor executor({.threads = 1, .max_queue = 100});
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(executor.TrySubmit([&order, i] { order.push_back(i); }));
  executor.Shutdown();
  EXPECT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(ExecutorLane, NeverRunsMoreThanItsWidth) {
  common::Mutex mutex;
  int running = 0;
  int most = 0;
  int done = 0;
  Executor executor({.threads = 8, .max_queue = 100});
  ExecutorLane lane(&executor, 3);
  for (int i = 0; i < 500; ++i) {
    EXPECT_TRUE(lane.TrySubmit([&] {
      {
        common::MutexLock lock(&mutex);
        most = std::max(most, ++running);
      }
      common::MutexLock lock(&mutex);
      --running;
      ++done;
    }));
  }
  // The lane hands its later tasks to the executor itself, so wait for them before shutting that
  // down.
  std::promise<void> last;
  EXPECT_TRUE(lane.TrySubmit([&] { last.set_value(); }));
  last.get_future().wait();
  executor.Shutdown();
  EXPECT_EQ(done, 500);
  EXPECT_LE(most, 3);
}

TEST(ExecutorLane, LetsOthersHaveTheirTurn) {
  Executor executor({.threads = 1, .max_queue = 100});
  ExecutorLane lane(&executor, 4);
  std::vector<int> order;  // of the one thread
  std::promise<void> started;
  std::promise<void> release;
  ASSERT_TRUE(executor.TrySubmit([&] {
    started.set_value();
    release.get_future().wait();
  }));
  started.get_future().wait();
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(lane.TrySubmit([&order, i] { order.push_back(i); }));
  ASSERT_TRUE(executor.TrySubmit([&order] { order.push_back(-1); }));
  std::promise<void> last;
  ASSERT_TRUE(lane.TrySubmit([&] { last.set_value(); }));
  release.set_value();
  last.get_future().wait();
  executor.Shutdown();
  ASSERT_EQ(order.size(), 51u);
  // Four of the lane's were in the executor's queue before it.
  EXPECT_EQ(order[4], -1);
}

TEST(ExecutorLane, AFullExecutorHoldsUpOnlyWhatHasNoRunner) {
  Executor executor({.threads = 1, .max_queue = 1});
  ExecutorLane lane(&executor, 2);
  ExecutorLane other_lane(&executor, 2);
  std::promise<void> started;
  std::promise<void> release;
  ASSERT_TRUE(executor.TrySubmit([&] {
    started.set_value();
    release.get_future().wait();
  }));
  started.get_future().wait();
  int ran = 0;
  EXPECT_TRUE(lane.TrySubmit([&ran] { ++ran; }));
  EXPECT_TRUE(lane.TrySubmit([&ran] { ++ran; }));  // its runner will take this one too
  EXPECT_FALSE(other_lane.TrySubmit([&ran] { ++ran; }));
  release.set_value();
  executor.Shutdown();
  EXPECT_EQ(ran, 2);
}

}  // namespace
}  // namespace hopscope::rpc

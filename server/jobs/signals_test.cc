#include "server/jobs/signals.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace hopscope::jobs {
namespace {

TEST(SignalsTest, EachTopicReachesItsOwnListeners) {
  Signals signals;
  int work = 0, worker_a = 0, worker_b = 0, job = 0;
  const auto on_work = signals.OnWork([&] { ++work; });
  const auto on_a = signals.OnWorker("workers/a", [&] { ++worker_a; });
  const auto on_b = signals.OnWorker("workers/b", [&] { ++worker_b; });
  const auto on_job = signals.OnJob("jobs/x", [&](const v1::EvalEvent*) { ++job; });
  signals.RaiseWork();
  signals.RaiseWorker("workers/b");
  signals.RaiseWorker("workers/b");
  signals.RaiseJob("jobs/x");
  signals.RaiseJob("jobs/y");
  EXPECT_EQ(work, 1);
  EXPECT_EQ(worker_a, 0);
  EXPECT_EQ(worker_b, 2);
  EXPECT_EQ(job, 1);
}

TEST(SignalsTest, EveryListenerHearsASignalInTheOrderOfSubscription) {
  Signals signals;
  std::string heard;
  const auto first = signals.OnWork([&] { heard += "1"; });
  const auto second = signals.OnWork([&] { heard += "2"; });
  const auto third = signals.OnWork([&] { heard += "3"; });
  signals.RaiseWork();
  EXPECT_EQ(heard, "123");
}

TEST(SignalsTest, ALiveEventComesWithTheSignalAndADurableOneWithout) {
  Signals signals;
  std::vector<std::string> heard;
  const auto subscription = signals.OnJob("jobs/x", [&](const v1::EvalEvent* live) {
    heard.push_back(live == nullptr ? "stored" : live->unit_started().worker());
  });
  v1::EvalEvent event;
  event.mutable_unit_started()->set_worker("workers/a");
  signals.RaiseJob("jobs/x", &event);
  signals.RaiseJob("jobs/x");
  EXPECT_EQ(heard, (std::vector<std::string>{"workers/a", "stored"}));
}

TEST(SignalsTest, ListenersAreKnownAsLongAsTheySubscribe) {
  Signals signals;
  EXPECT_FALSE(signals.JobHasListeners("jobs/x"));
  auto first = signals.OnJob("jobs/x", [](const v1::EvalEvent*) {});
  auto second = signals.OnJob("jobs/x", [](const v1::EvalEvent*) {});
  EXPECT_TRUE(signals.JobHasListeners("jobs/x"));
  EXPECT_FALSE(signals.JobHasListeners("jobs/y"));
  first.reset();
  EXPECT_TRUE(signals.JobHasListeners("jobs/x"));
  second.reset();
  EXPECT_FALSE(signals.JobHasListeners("jobs/x"));
}

TEST(SignalsTest, ASubscriptionMayOutliveTheSignals) {
  auto signals = std::make_unique<Signals>();
  int heard = 0;
  const auto subscription = signals->OnWork([&] { ++heard; });
  signals->RaiseWork();
  signals.reset();
  EXPECT_EQ(heard, 1);
}

TEST(SignalsTest, AnEndedSubscriptionIsNotCalledAgainEvenWhileOthersRaise) {
  Signals signals;
  std::atomic<bool> stop = false;
  std::vector<std::thread> raisers;
  for (int i = 0; i < 2; ++i) {
    raisers.emplace_back([&] {
      while (!stop) {
        signals.RaiseWork();
        std::this_thread::yield();
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    // The callback's target dies right after the subscription: a late call would be seen by the
    // sanitizers.
    auto counter = std::make_unique<std::atomic<int>>(0);
    auto subscription = signals.OnWork([target = counter.get()] { ++*target; });
    if (i % 2 == 0) {
      while (*counter == 0) std::this_thread::yield();
    }
    subscription.reset();
    const int heard = *counter;
    std::this_thread::yield();
    EXPECT_EQ(*counter, heard);
  }
  stop = true;
  for (std::thread& raiser : raisers) raiser.join();
}

}  // namespace
}  // namespace hopscope::jobs

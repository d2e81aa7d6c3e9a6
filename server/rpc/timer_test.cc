#include "server/rpc/timer.h"

#include <future>
#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace hopscope::rpc {
namespace {

TEST(Timer, CallsInOrderOfTime) {
  std::vector<int> order;  // of the timer's one thread
  std::promise<void> last;
  Timer timer;
  timer.CallAfter(absl::Milliseconds(30), [&] {
    order.push_back(3);
    last.set_value();
  });
  timer.CallAfter(absl::Milliseconds(20), [&] { order.push_back(2); });
  timer.CallAfter(absl::Milliseconds(-5), [&] { order.push_back(1); });
  last.get_future().wait();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(Timer, DoesNotCallEarly) {
  std::promise<std::chrono::steady_clock::time_point> called;
  const auto start = std::chrono::steady_clock::now();
  Timer timer;
  timer.CallAfter(absl::Milliseconds(40),
                  [&] { called.set_value(std::chrono::steady_clock::now()); });
  EXPECT_GE(called.get_future().get() - start, std::chrono::milliseconds(40));
}

TEST(Timer, ACancelledCallNeverComes) {
  bool called = false;
  std::promise<void> last;
  Timer timer;
  const Timer::Id id = timer.CallAfter(absl::Milliseconds(10), [&] { called = true; });
  timer.Cancel(id);
  timer.CallAfter(absl::Milliseconds(20), [&] { last.set_value(); });
  last.get_future().wait();
  timer.Cancel(id);
  EXPECT_FALSE(called);
}

TEST(Timer, CallsMayUseTheTimer) {
  std::promise<void> last;
  Timer timer;
  timer.CallAfter(absl::ZeroDuration(), [&] {
    const Timer::Id dropped = timer.CallAfter(absl::Hours(1), [] {});
    timer.Cancel(dropped);
    timer.CallAfter(absl::Milliseconds(1), [&] { last.set_value(); });
  });
  last.get_future().wait();
}

TEST(Timer, DropsWhatIsLeftAtItsEnd) {
  auto owned = std::make_shared<int>(7);
  {
    Timer timer;
    timer.CallAfter(absl::Hours(1), [owned] {});
    EXPECT_EQ(owned.use_count(), 2);
  }
  EXPECT_EQ(owned.use_count(), 1);
}

}  // namespace
}  // namespace hopscope::rpc

#include "server/ticker.h"

#include "common/mutex.h"
#include "gtest/gtest.h"

namespace hopscope::server {
namespace {

// Counts runs, and holds them up where it is told to.
class Task {
 public:
  void Run() {
    common::MutexLock lock(&mutex_);
    ++begun_;
    changed_.SignalAll();
    while (held_) changed_.Wait(&mutex_);
  }
  void Hold() {
    common::MutexLock lock(&mutex_);
    held_ = true;
  }
  void Release() {
    common::MutexLock lock(&mutex_);
    held_ = false;
    changed_.SignalAll();
  }
  void Await(int runs) {
    common::MutexLock lock(&mutex_);
    while (begun_ < runs) changed_.Wait(&mutex_);
  }

 private:
  common::Mutex mutex_;
  common::CondVar changed_;
  int begun_ ABSL_GUARDED_BY(mutex_) = 0;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST(Ticker, RunsAtOnceAndAgain) {
  Task task;
  Ticker ticker(absl::Milliseconds(1), [&task] { task.Run(); });
  task.Await(5);
}

TEST(Ticker, EndsWithoutWaitingForItsInterval) {
  Task task;
  Ticker ticker(absl::Hours(1), [&task] { task.Run(); });
  task.Await(1);
}

TEST(Ticker, KnowsHowLongItHasHung) {
  Task task;
  task.Hold();
  Ticker ticker(absl::Milliseconds(1), [&task] { task.Run(); });
  task.Await(1);
  while (ticker.SinceLastRun() < absl::Milliseconds(20)) {
  }
  task.Release();
  task.Await(3);
  while (ticker.SinceLastRun() >= absl::Milliseconds(20)) {
  }
}

}  // namespace
}  // namespace hopscope::server

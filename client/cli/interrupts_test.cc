#include "client/cli/interrupts.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "client/cli/command_interrupts.h"
#include "common/mutex.h"
#include "gtest/gtest.h"

namespace hopscope::cli {
namespace {

TEST(SignalInterruptsTest, SignalsReachTheHandlerInOrder) {
  const std::unique_ptr<Interrupts> interrupts = MakeSignalInterrupts();
  common::Mutex mutex;
  common::CondVar changed;
  int last = 0;
  interrupts->SetHandler([&](int count) {
    common::MutexLock lock(&mutex);
    last = count;
    changed.SignalAll();
  });
  int expected = 0;
  for (const int signal : {SIGINT, SIGTERM}) {
    kill(getpid(), signal);
    ++expected;
    common::MutexLock lock(&mutex);
    while (last < expected) changed.Wait(&mutex);
    EXPECT_EQ(last, expected);
  }
  interrupts->SetHandler(nullptr);
}

TEST(CommandInterruptsTest, AnInterruptCancels) {
  FakeInterrupts interrupts;
  client::Cancellation cancellation;
  CommandInterrupts command(&interrupts, &cancellation);
  EXPECT_EQ(command.count(), 0);
  interrupts.Trigger();
  EXPECT_EQ(command.count(), 1);
  EXPECT_TRUE(cancellation.cancelled());
}

TEST(CommandInterruptsTest, TheFirstMayBeSpared) {
  FakeInterrupts interrupts;
  client::Cancellation cancellation;
  CommandInterrupts command(&interrupts, &cancellation);
  const CommandInterrupts::SpareTheFirst spare(&command);
  interrupts.Trigger();
  EXPECT_EQ(command.WaitForMore(0, absl::InfiniteDuration()), 1);
  EXPECT_FALSE(cancellation.cancelled());
  interrupts.Trigger();
  EXPECT_TRUE(cancellation.cancelled());
}

TEST(CommandInterruptsTest, AfterTheJobTheNextOneCancels) {
  FakeInterrupts interrupts;
  client::Cancellation cancellation;
  CommandInterrupts command(&interrupts, &cancellation);
  { const CommandInterrupts::SpareTheFirst spare(&command); }
  interrupts.Trigger();
  EXPECT_TRUE(cancellation.cancelled());
}

TEST(CommandInterruptsTest, WaitingEndsWhenWokenOrInTime) {
  FakeInterrupts interrupts;
  client::Cancellation cancellation;
  CommandInterrupts command(&interrupts, &cancellation);
  EXPECT_EQ(command.WaitForMore(0, absl::ZeroDuration()), 0);
  command.Wake();
  EXPECT_EQ(command.WaitForMore(0, absl::InfiniteDuration()), 0);
}

TEST(CommandInterruptsTest, AfterItsEndInterruptsAreNotItsOwn) {
  FakeInterrupts interrupts;
  client::Cancellation cancellation;
  { CommandInterrupts command(&interrupts, &cancellation); }
  interrupts.Trigger();
  EXPECT_FALSE(cancellation.cancelled());
}

}  // namespace
}  // namespace hopscope::cli

#include "client/cli/child_process.h"

#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

class ChildProcessTest : public testing::Test {
 protected:
  ChildProcessTest() {
    std::string path = testing::TempDir() + "/child-XXXXXX";
    folder_ = mkdtemp(path.data());
  }
  ~ChildProcessTest() override { std::filesystem::remove_all(folder_); }

  absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const std::string& script,
                                                      const std::string& launcher = "") {
    return ChildProcess::Start({.name = "child",
                                .command = {"/bin/sh", "-c", script},
                                .log_path = (folder_ / "log").string(),
                                .launcher = launcher});
  }

  std::string Log() const {
    std::ifstream file(folder_ / "log");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void AwaitLog(const std::string& text) const {
    while (Log().find(text) == std::string::npos) absl::SleepFor(absl::Milliseconds(5));
  }

  std::filesystem::path folder_;
};

TEST_F(ChildProcessTest, ItsEndIsKnown) {
  auto good = Start("exit 0");
  ASSERT_TRUE(good.ok()) << good.status();
  ASSERT_TRUE((*good)->WaitFor(absl::InfiniteDuration()));
  EXPECT_THAT((*good)->Ended(), Optional(std::string("exit code 0")));
  auto bad = Start("exit 3");
  ASSERT_TRUE((*bad)->WaitFor(absl::InfiniteDuration()));
  EXPECT_THAT((*bad)->Ended(), Optional(std::string("exit code 3")));
  auto killed = Start("kill -9 $$");
  ASSERT_TRUE((*killed)->WaitFor(absl::InfiniteDuration()));
  EXPECT_THAT((*killed)->Ended(), Optional(HasSubstr("signal 9")));
}

TEST_F(ChildProcessTest, OutputGoesToItsLog) {
  auto child = Start("i=0; while [ $i -lt 30 ]; do echo out $i; i=$((i+1)); done; echo end >&2");
  ASSERT_TRUE(child.ok());
  ASSERT_TRUE((*child)->WaitFor(absl::InfiniteDuration()));
  EXPECT_EQ((*child)->LogTail(3), "  | out 28\n  | out 29\n  | end");
}

TEST_F(ChildProcessTest, EndsWhenItIsAskedOrMade) {
  auto polite = Start("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(polite.ok());
  AwaitLog("ready");
  EXPECT_FALSE((*polite)->Ended().has_value());
  (*polite)->Terminate();
  EXPECT_TRUE((*polite)->WaitFor(absl::InfiniteDuration()));
  EXPECT_THAT(Log(), HasSubstr("bye"));
  auto deaf = Start("trap '' TERM; echo deaf; while :; do sleep 0.01; done");
  AwaitLog("deaf");
  (*deaf)->Terminate();
  EXPECT_FALSE((*deaf)->WaitFor(absl::Milliseconds(50)));
  (*deaf)->Kill();
  EXPECT_TRUE((*deaf)->WaitFor(absl::InfiniteDuration()));
}

TEST_F(ChildProcessTest, DestructionEndsIt) {
  pid_t pid = 0;
  {
    auto child = Start("exec sleep 1000");
    ASSERT_TRUE(child.ok());
    pid = (*child)->pid();
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST_F(ChildProcessTest, StartsWithSignalsUnblockedInItsOwnGroupAndWithoutInput) {
  sigset_t signals, before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  auto child = Start("grep SigBlk /proc/self/status; read line || echo no input; exec sleep 1000");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(child.ok());
  AwaitLog("no input");
  EXPECT_THAT(Log(), HasSubstr("SigBlk:\t0000000000000000"));
  EXPECT_EQ(getpgid((*child)->pid()), (*child)->pid());
}

TEST_F(ChildProcessTest, AProgramThatIsNotThereIsNamed) {
  const auto child = ChildProcess::Start(
      {.name = "child", .command = {"/no/such/program"}, .log_path = "/dev/null"});
  EXPECT_EQ(common::ErrorReason(child.status()), "PROGRAM_NOT_FOUND");
  EXPECT_THAT(std::string(child.status().message()), HasSubstr("/no/such/program"));
}

TEST_F(ChildProcessTest, TheLauncherRunsTheCommandInItsPlace) {
  auto child = Start("echo $$; exec sleep 1000", HOPSCOPE_PROGRAM);
  ASSERT_TRUE(child.ok()) << child.status();
  AwaitLog("\n");
  EXPECT_EQ(Log(), absl::StrCat((*child)->pid(), "\n"));
  (*child)->Terminate();
  EXPECT_TRUE((*child)->WaitFor(absl::InfiniteDuration()));
}

// A parent that is killed can clean nothing up: the kernel ends the child.
TEST_F(ChildProcessTest, WithTheLauncherItEndsWithItsParent) {
  // The parent is a shell, whose child the launcher becomes.
  const std::string pid_file = (folder_ / "pid").string();
  auto parent =
      Start(absl::StrCat(HOPSCOPE_PROGRAM, " ", kExecWithParentCommand,
                         " $$ /bin/sh -c 'echo $$ > ", pid_file, "; exec sleep 1000' & wait"));
  ASSERT_TRUE(parent.ok());
  pid_t grandchild = 0;
  while (grandchild == 0) {
    std::ifstream(pid_file) >> grandchild;
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(kill(grandchild, 0), 0);
  (*parent)->Kill();
  (*parent)->WaitFor(absl::InfiniteDuration());
  // Gone, or a zombie that nobody has reaped yet.
  const auto running = [grandchild] {
    std::ifstream status(absl::StrCat("/proc/", grandchild, "/stat"));
    std::string id, name, state;
    return static_cast<bool>(status >> id >> name >> state) && state != "Z" && state != "X";
  };
  while (running()) absl::SleepFor(absl::Milliseconds(5));
}

TEST(ExecWithParentTest, RefusesWhatItCannotRun) {
  EXPECT_NE(ExecWithParent({}), 0);
  EXPECT_NE(ExecWithParent({"x", "/bin/true"}), 0);
  EXPECT_NE(ExecWithParent({"1000000000", "/bin/true"}), 0) << "its parent has ended";
}

}  // namespace
}  // namespace hopscope::cli

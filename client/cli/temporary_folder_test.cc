#include "client/cli/temporary_folder.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace hopscope::cli {
namespace {

namespace fs = std::filesystem;

class TemporaryFolderTest : public testing::Test {
 protected:
  TemporaryFolderTest() {
    std::string path = testing::TempDir() + "/temporary-XXXXXX";
    parent_ = mkdtemp(path.data());
    setenv("TMPDIR", parent_.c_str(), 1);
  }
  ~TemporaryFolderTest() override {
    unsetenv("TMPDIR");
    fs::remove_all(parent_);
  }

  fs::path parent_;
};

TEST_F(TemporaryFolderTest, IsGoneWithItsObject) {
  auto folder = TemporaryFolder::Make("test");
  ASSERT_TRUE(folder.ok()) << folder.status();
  std::ofstream((*folder)->File("x")) << "x";
  EXPECT_TRUE(fs::exists((*folder)->File("x")));
  folder->reset();
  EXPECT_TRUE(fs::is_empty(parent_));
}

TEST_F(TemporaryFolderTest, TheNextOneRemovesThatOfAProcessThatWasKilledAndNoOther) {
  auto held = TemporaryFolder::Make("test");
  ASSERT_TRUE(held.ok()) << held.status();
  fs::create_directory(parent_ / "tests-other");
  fs::create_directory(parent_ / "elsewhere");
  std::ofstream(parent_ / "elsewhere" / "file") << "x";
  fs::create_directory_symlink(parent_ / "elsewhere", parent_ / "test-link");
  std::ofstream(parent_ / "test-file") << "x";
  const pid_t child = fork();
  if (child == 0) {
    const auto made = TemporaryFolder::Make("test");
    std::ofstream((*made)->File("mark")) << "x";
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto marks = [this] {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(parent_)) {
      count += fs::exists(entry.path() / "mark") ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(marks(), 1);
  ASSERT_TRUE(TemporaryFolder::Make("test").ok());
  EXPECT_EQ(marks(), 0);
  EXPECT_TRUE(fs::exists((*held)->File("")));
  EXPECT_TRUE(fs::exists(parent_ / "tests-other"));
  EXPECT_TRUE(fs::exists(parent_ / "elsewhere" / "file"));
  EXPECT_TRUE(fs::exists(parent_ / "test-file"));
}

TEST_F(TemporaryFolderTest, SaysWhereThereCanBeNone) {
  setenv("TMPDIR", "/proc/self", 1);
  const auto folder = TemporaryFolder::Make("test");
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace hopscope::cli

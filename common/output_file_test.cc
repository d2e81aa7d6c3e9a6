#include "common/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <thread>

#include "common/checkpoint/testing/write_checkpoint.h"
#include "common/status.h"

namespace hopscope::common {
namespace {

using checkpoint::testing::ReadFile;
using checkpoint::testing::TempFolder;
using testing::HasSubstr;

int FilesIn(const TempFolder& folder) {
  const std::filesystem::directory_iterator files(folder.path());
  return static_cast<int>(std::distance(begin(files), end(files)));
}

TEST(OutputFileTest, AppearsWhenCommitted) {
  const TempFolder folder;
  const std::string path = folder.Path("out");
  {
    auto file = OutputFile::Create(path);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(file->Write("half ").ok());
    EXPECT_FALSE(std::filesystem::exists(path));
    ASSERT_TRUE(file->Write("whole").ok());
    ASSERT_TRUE(file->Commit().ok());
  }
  EXPECT_EQ(ReadFile(path), "half whole");
  EXPECT_EQ(FilesIn(folder), 1);
}

TEST(OutputFileTest, LeavesTheOldFileWhereItIsGivenUp) {
  const TempFolder folder;
  folder.Write("out", "old");
  {
    auto file = OutputFile::Create(folder.Path("out"));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(file->Write("new").ok());
  }
  EXPECT_EQ(ReadFile(folder.Path("out")), "old");
  EXPECT_EQ(FilesIn(folder), 1);
}

TEST(OutputFileTest, SaysWhyItCannotWrite) {
  const absl::Status status = OutputFile::Create("/nowhere/out").status();
  EXPECT_EQ(ErrorReason(status), "OUTPUT_FAILED");
  EXPECT_THAT(status.message(), HasSubstr("/nowhere/out"));
}

TEST(OutputFileTest, ReplacesTheTargetOfALinkAndKeepsTheLink) {
  const TempFolder folder;
  folder.Write("target", "old");
  std::filesystem::create_symlink("target", folder.Path("link"));
  auto file = OutputFile::Create(folder.Path("link"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Write("new").ok());
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder.Path("link")));
  EXPECT_EQ(ReadFile(folder.Path("target")), "new");
}

TEST(OutputFileTest, WritesIntoWhatIsNoRegularFile) {
  const TempFolder folder;
  const std::string path = folder.Path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::string received(8, '\0');
  std::thread reader([&] {
    const int descriptor = open(path.c_str(), O_RDONLY);
    received.resize(std::max<ssize_t>(0, read(descriptor, received.data(), received.size())));
    close(descriptor);
  });
  auto file = OutputFile::Create(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Write("new").ok());
  ASSERT_TRUE(file->Commit().ok());
  reader.join();
  EXPECT_EQ(received, "new");
  EXPECT_TRUE(std::filesystem::is_fifo(path));
}

TEST(OutputFileTest, RefusesAFolder) {
  const TempFolder folder;
  EXPECT_EQ(ErrorReason(OutputFile::Create(folder.path()).status()), "OUTPUT_FAILED");
}

}  // namespace
}  // namespace hopscope::common

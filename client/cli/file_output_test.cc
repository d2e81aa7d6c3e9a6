#include "client/cli/file_output.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <ostream>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace hopscope::cli {
namespace {

TEST(FileOutputTest, WritesEverythingInOrder) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  // Far more than the buffer and the pipe hold, through a descriptor that does not block.
  ASSERT_EQ(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
  std::string expected;
  for (int i = 0; i < 60000; ++i) expected += std::to_string(i) + "\n";
  std::string read_text;
  std::thread reader([&] {
    char buffer[4096];
    for (ssize_t got; (got = read(ends[0], buffer, sizeof(buffer))) > 0;) {
      read_text.append(buffer, static_cast<size_t>(got));
    }
  });
  FileOutput output(ends[1]);
  std::ostream stream(&output);
  for (int i = 0; i < 60000; ++i) stream << i << "\n";
  stream.flush();
  EXPECT_TRUE(stream.good());
  EXPECT_EQ(output.error(), 0);
  close(ends[1]);
  reader.join();
  close(ends[0]);
  EXPECT_EQ(read_text, expected);
}

TEST(FileOutputTest, RemembersThatThereWasNoRoom) {
  const int full = open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  FileOutput output(full);
  std::ostream stream(&output);
  stream << "x" << std::flush;
  EXPECT_FALSE(stream.good());
  EXPECT_EQ(output.error(), ENOSPC);
  close(full);
}

TEST(FileOutputTest, RemembersThatNobodyReads) {
  signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  FileOutput output(ends[1]);
  std::ostream stream(&output);
  stream << std::string(100000, 'x') << std::flush;
  EXPECT_FALSE(stream.good());
  EXPECT_EQ(output.error(), EPIPE);
  close(ends[1]);
}

}  // namespace
}  // namespace hopscope::cli

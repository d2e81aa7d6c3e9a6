#include "client/cli/console.h"

#include <sstream>
#include <thread>

#include "gtest/gtest.h"

namespace hopscope::cli {
namespace {

TEST(ConsoleTest, ResultsAndMessagesGoToTheirStreams) {
  std::ostringstream out, err;
  Console console({.out = &out, .err = &err});
  EXPECT_TRUE(console.PrintLine("result"));
  console.Message("note");
  console.SetStatus("bar");
  EXPECT_EQ(out.str(), "result\n");
  EXPECT_EQ(err.str(), "note\n") << "no bar without a terminal";
}

TEST(ConsoleTest, MessagesPushTheStatusLineDown) {
  std::ostringstream out, err;
  Console console({.out = &out, .err = &err, .err_is_terminal = true});
  console.SetStatus("[==]");
  console.Message("note");
  console.SetStatus("[===]");
  console.SetStatus("");
  console.Message("end");
  EXPECT_EQ(err.str(), "[==]\r\033[Knote\n[==]\r\033[K[===]\r\033[Kend\n");
}

TEST(ConsoleTest, StatusFitsTheTerminal) {
  std::ostringstream out, err;
  int columns = 5;
  Console console(
      {.out = &out, .err = &err, .err_is_terminal = true, .err_columns = [&] { return columns; }});
  console.SetStatus("abcdefgh");
  EXPECT_EQ(err.str(), "abc~");
  columns = 0;
  EXPECT_EQ(console.columns(), 80);
}

TEST(ConsoleTest, ColoursOnlyWhereAllowed) {
  std::ostringstream out, err;
  Console plain({.out = &out, .err = &err, .err_is_terminal = true});
  plain.Message("bad", Console::Tone::kError);
  EXPECT_EQ(err.str(), "bad\n");
  err.str("");
  Console colorful({.out = &out, .err = &err, .err_is_terminal = true, .color = true});
  colorful.Message("bad", Console::Tone::kError);
  EXPECT_EQ(err.str(), "\033[31mbad\033[0m\n");
}

TEST(ConsoleTest, TerminalCodesFromElsewhereAreHarmless) {
  std::ostringstream out, err;
  Console console({.out = &out, .err = &err, .err_is_terminal = true});
  console.Message("a\033[2Jb\x07\xff");
  EXPECT_EQ(err.str(), "a?[2Jb?\xef\xbf\xbd\n");
}

TEST(ConsoleTest, SaysWhereNobodyReadsAnyMore) {
  std::ostringstream out, err;
  Console console({.out = &out, .err = &err});
  out.setstate(std::ios::badbit);
  EXPECT_FALSE(console.Print("x"));
}

TEST(ConsoleTest, MayBeUsedFromSeveralThreads) {
  std::ostringstream out, err;
  Console console({.out = &out, .err = &err, .err_is_terminal = true});
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) console.Message("m");
  });
  for (int i = 0; i < 100; ++i) console.SetStatus("s");
  other.join();
}

}  // namespace
}  // namespace hopscope::cli

#include "common/utf8.h"

#include "gtest/gtest.h"

namespace hopscope::common {
namespace {

constexpr char kReplacement[] = "\xef\xbf\xbd";

TEST(ReplaceInvalidUtf8, KeepsWhatIsValid) {
  for (const char* text : {"", "plain", "\x7f", "\xc2\x80", "é", "漢字", "\xed\x9f\xbf",
                           "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "😀 end"}) {
    EXPECT_EQ(ReplaceInvalidUtf8(text), text);
  }
  EXPECT_EQ(ReplaceInvalidUtf8(absl::string_view("a\0b", 3)), absl::string_view("a\0b", 3));
}

TEST(ReplaceInvalidUtf8, ReplacesEachBadByte) {
  const std::string r = kReplacement;
  EXPECT_EQ(ReplaceInvalidUtf8("a\xff z"), "a" + r + " z");
  EXPECT_EQ(ReplaceInvalidUtf8("\x80"), r);                          // continuation without a lead
  EXPECT_EQ(ReplaceInvalidUtf8("\xc0\xaf"), r + r);                  // overlong
  EXPECT_EQ(ReplaceInvalidUtf8("\xe0\x80\x80"), r + r + r);          // overlong
  EXPECT_EQ(ReplaceInvalidUtf8("\xed\xa0\x80"), r + r + r);          // surrogate
  EXPECT_EQ(ReplaceInvalidUtf8("\xf4\x90\x80\x80"), r + r + r + r);  // above U+10FFFF
  EXPECT_EQ(ReplaceInvalidUtf8("x\xe6\xbc"), "x" + r + r);           // cut off at the end
  EXPECT_EQ(ReplaceInvalidUtf8("\xe6\xbc!"), r + r + "!");           // cut off in the middle
}

TEST(CutUtf8, CutsBetweenCharacters) {
  EXPECT_EQ(CutUtf8("abc", 3), "abc");
  EXPECT_EQ(CutUtf8("abc", 2), "ab");
  EXPECT_EQ(CutUtf8("aé", 2), "a");
  EXPECT_EQ(CutUtf8("a漢b", 3), "a");
  EXPECT_EQ(CutUtf8("a漢b", 4), "a漢");
  EXPECT_EQ(CutUtf8("😀", 3), "");
  EXPECT_EQ(CutUtf8("abc", 0), "");
}

TEST(FindInvalidUtf8Test, NamesTheFirstByteThatIsNoText) {
  EXPECT_EQ(FindInvalidUtf8(""), 0u);
  EXPECT_EQ(FindInvalidUtf8("a\xc3\xa9z"), 4u);
  EXPECT_EQ(FindInvalidUtf8("a\xef"), 1u);  // the first byte of U+FFFD itself
  EXPECT_EQ(FindInvalidUtf8("ab\xef\xbf\xbd\xef\xbf"), 5u);
  EXPECT_EQ(FindInvalidUtf8("\xed\xa0\x80"), 0u);
}

}  // namespace
}  // namespace hopscope::common

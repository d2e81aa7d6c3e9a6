#include "common/spec/text.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::spec {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(QuotedTest, IsOneSafeLineWhateverTheTextHolds) {
  EXPECT_EQ(Quoted("letter"), "\"letter\"");
  EXPECT_EQ(Quoted(""), "\"\"");
  EXPECT_EQ(Quoted("größe"), "\"größe\"");
  EXPECT_EQ(Quoted("a\n\"b\""), "\"a\\n\\\"b\\\"\"");
  EXPECT_EQ(Quoted("\xff"), "\"\xef\xbf\xbd\"");
}

TEST(QuotedTest, CutsLongTextsBetweenCharacters) {
  const std::string quoted = Quoted(std::string(79, 'a') + "ä" + std::string(1000, 'b'));
  EXPECT_EQ(quoted, "\"" + std::string(79, 'a') + "\"...");
}

TEST(OneOfTest, ListsTheNamesAndTheNearestOne) {
  EXPECT_EQ(OneOf("leter", {"number", "letter"}), "one of number, letter; did you mean letter?");
  EXPECT_EQ(OneOf("NUMBERS", {"number", "letter"}), "one of number, letter; did you mean number?");
  EXPECT_EQ(OneOf("positional-symbolic", {"accuracy", "positional_symbolic"}),
            "one of accuracy, positional_symbolic; did you mean positional_symbolic?");
}

TEST(OneOfTest, SuggestsNothingThatIsNotClose) {
  for (const char* name : {"", "x", "tokens", "induction"}) {
    EXPECT_THAT(OneOf(name, {"number", "letter"}), Not(HasSubstr("did you mean"))) << name;
  }
  EXPECT_THAT(OneOf(std::string(1 << 20, 'n'), {"number"}), Not(HasSubstr("did you mean")));
}

TEST(IsPrintableUtf8Test, AcceptsTextOfAnyScript) {
  for (const char* text : {"", "length-sweep", "größe 4 µm", "長さ", "\U0001F600", "\u00A0"}) {
    EXPECT_TRUE(IsPrintableUtf8(text)) << text;
  }
}

TEST(IsPrintableUtf8Test, RefusesMalformedTextAndControlCharacters) {
  for (const std::string text : {"\xff", "\xc3", "\xc3(", "\xe2\x82", "\xc0\xaf", "\xed\xa0\x80",
                                 "\xf4\x90\x80\x80", "a\nb", "a\tb", "\x7f", "\xc2\x85", "\xc2"}) {
    EXPECT_FALSE(IsPrintableUtf8(text)) << Quoted(text);
  }
  EXPECT_FALSE(IsPrintableUtf8(std::string("a\0b", 3)));
}

}  // namespace
}  // namespace hopscope::spec

#include "common/checkpoint/strict_json.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::checkpoint {
namespace {

using ::testing::HasSubstr;

std::string Problem(absl::string_view text, int max_depth = 8) {
  const auto parsed = ParseStrictJson(text, max_depth);
  return parsed.ok() ? "" : std::string(parsed.status().message());
}

TEST(StrictJson, BuildsTheValueThatTheTextHolds) {
  const auto parsed =
      ParseStrictJson(R"( {"a": [1, -2, 3.5, "x", null, true, {}], "b": {"c": []}} )", 8);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->dump(), R"({"a":[1,-2,3.5,"x",null,true,{}],"b":{"c":[]}})");
  EXPECT_TRUE((*parsed)["a"][0].is_number_unsigned());
}

TEST(StrictJson, RefusesDuplicateKeysAtAnyDepth) {
  EXPECT_THAT(Problem(R"({"a":1,"a":1})"), HasSubstr("'a' stands twice"));
  EXPECT_THAT(Problem(R"([{"x":{"a":1,"b":2,"a":3}}])"), HasSubstr("'a' stands twice"));
  EXPECT_EQ(Problem(R"([{"a":1},{"a":1}])"), "");
}

TEST(StrictJson, BoundsDepth) {
  EXPECT_EQ(Problem("[[[]]]", 3), "");
  EXPECT_THAT(Problem("[[[[]]]]", 3), HasSubstr("more than 3"));
  EXPECT_THAT(Problem(std::string(1'000'000, '[')), HasSubstr("more than 8"));
}

TEST(StrictJson, RefusesWhatLaxParsersLetThrough) {
  EXPECT_THAT(Problem("\xEF\xBB\xBF{}"), HasSubstr("byte order mark"));
  EXPECT_THAT(Problem(absl::string_view("{}\0{}", 5)), HasSubstr("NUL"));
  for (const char* text : {"", "{", "{}x", "{'a':1}", "[1,]", "[NaN]", "[1e999]", "// c\n1",
                           "\"\xC0\x80\"", "\"\\ud800\"", "[01]"}) {
    EXPECT_NE(Problem(text), "") << text;
  }
}

TEST(StrictJson, SyntaxErrorsDoNotRepeatTheText) {
  EXPECT_LT(Problem("[\"" + std::string(100'000, 'x')).size(), 500U);
}

TEST(IsUtf8, KnowsWellFormedSequences) {
  for (const char* good : {"", "ascii", "\xC2\x80", "\xE0\xA0\x80", "\xED\x9F\xBF",
                           "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  for (const char* bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\xC2", "\xE2\x82", "\xFF", "a\xC3("}) {
    EXPECT_FALSE(IsUtf8(bad));
  }
}

}  // namespace
}  // namespace hopscope::checkpoint

#include "common/checkpoint/glob.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::checkpoint {
namespace {

using ::testing::ElementsAre;

bool Path(absl::string_view pattern, absl::string_view path) {
  const std::vector<absl::string_view> pattern_parts = absl::StrSplit(pattern, '/');
  const std::vector<absl::string_view> path_parts = absl::StrSplit(path, '/');
  return MatchPath(pattern_parts, path_parts);
}

TEST(MatchPart, WildcardsAndSets) {
  EXPECT_TRUE(MatchPart("step", "step"));
  EXPECT_FALSE(MatchPart("step", "steps"));
  EXPECT_TRUE(MatchPart("*", "anything"));
  EXPECT_TRUE(MatchPart("*", ""));
  EXPECT_TRUE(MatchPart("s*p-*0", "step-00100"));
  EXPECT_FALSE(MatchPart("s*p-*1", "step-00100"));
  EXPECT_TRUE(MatchPart("a*b*c", "aXbYbZc"));
  EXPECT_TRUE(MatchPart("step-?", "step-1"));
  EXPECT_FALSE(MatchPart("step-?", "step-"));
  EXPECT_FALSE(MatchPart("step-?", "step-10"));
  EXPECT_TRUE(MatchPart("step-[0-4]", "step-3"));
  EXPECT_FALSE(MatchPart("step-[0-4]", "step-5"));
  EXPECT_TRUE(MatchPart("step-[!0-4]", "step-5"));
  EXPECT_TRUE(MatchPart("step-[^0-4]", "step-5"));
  EXPECT_TRUE(MatchPart("[ab][-x]", "a-"));
  EXPECT_TRUE(MatchPart("[]x]", "]"));
  EXPECT_FALSE(MatchPart("[]x]", "y"));
}

TEST(MatchPart, ABracketThatIsNeverClosedStandsForItself) {
  EXPECT_TRUE(MatchPart("a[b", "a[b"));
  EXPECT_FALSE(MatchPart("a[b", "ab"));
  EXPECT_TRUE(MatchPart("[", "["));
  EXPECT_TRUE(MatchPart("[!", "[!"));
}

TEST(MatchPart, TakesNoExponentialTime) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "*a";
  EXPECT_FALSE(MatchPart(pattern + "b", std::string(255, 'a')));
}

TEST(MatchPath, OneStarStaysWithinAPart) {
  EXPECT_TRUE(Path("number/*", "number/step-1"));
  EXPECT_FALSE(Path("number/*", "number/step-1/deeper"));
  EXPECT_FALSE(Path("number/*", "number"));
  EXPECT_FALSE(Path("*", "number/step-1"));
}

TEST(MatchPath, TwoStarsStandForAnyNumberOfParts) {
  EXPECT_TRUE(Path("**", "a"));
  EXPECT_TRUE(Path("**", "a/b/c"));
  EXPECT_TRUE(Path("a/**", "a"));
  EXPECT_TRUE(Path("a/**/step-*", "a/step-1"));
  EXPECT_TRUE(Path("a/**/step-*", "a/b/c/step-1"));
  EXPECT_FALSE(Path("a/**/step-*", "b/step-1"));
  EXPECT_TRUE(Path("**/b/**", "a/b/c"));
  EXPECT_FALSE(Path("**/b/**", "a/c"));
}

TEST(HasWildcard, KnowsThemAll) {
  EXPECT_FALSE(HasWildcard("number/step-06750"));
  for (const char* pattern : {"a*", "?", "[x]", "a/**"}) EXPECT_TRUE(HasWildcard(pattern));
}

TEST(NaturalLess, OrdersNumbersByTheirValue) {
  std::vector<std::string> names = {
      "step-10",  "step-2", "a/b",     "step-9/x", "a-1/b",
      "step-010", "a",      "step-2a", "b",        "step-99999999999999999999999"};
  std::sort(names.begin(), names.end(), NaturalLess);
  EXPECT_THAT(names, ElementsAre("a", "a/b", "a-1/b", "b", "step-2", "step-2a", "step-9/x",
                                 "step-10", "step-010", "step-99999999999999999999999"));
}

TEST(NaturalLess, IsAStrictOrder) {
  const std::vector<std::string> names = {"",   "0",   "00",   "1",     "01",    "001",   "a",
                                          "a0", "a00", "a/",   "a/0",   "a-",    "a1",    "a01",
                                          "1a", "01a", "a1b2", "a01b2", "a1b02", "a01b02"};
  for (const std::string& a : names) {
    for (const std::string& b : names) {
      EXPECT_EQ(NaturalLess(a, b) || NaturalLess(b, a), a != b) << a << " " << b;
      EXPECT_FALSE(NaturalLess(a, b) && NaturalLess(b, a)) << a << " " << b;
      for (const std::string& c : names) {
        if (NaturalLess(a, b) && NaturalLess(b, c)) {
          EXPECT_TRUE(NaturalLess(a, c)) << a << " " << b << " " << c;
        }
      }
    }
  }
}

}  // namespace
}  // namespace hopscope::checkpoint

#include "common/spec/head_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hopscope::spec {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(HeadSetTest, PartsMayNameHeadsLayersAndColumns) {
  const auto expand = [](absl::string_view text) {
    return ExpandHeadSet(ParseHeadSet(text).value(), 3, 2);
  };
  EXPECT_THAT(expand("0.0").value(), ElementsAre(Pair(0, 0)));
  EXPECT_THAT(expand("2.1+0.0").value(), ElementsAre(Pair(0, 0), Pair(2, 1)));
  EXPECT_THAT(expand("1.*+1.0").value(), ElementsAre(Pair(1, 0), Pair(1, 1)));
  EXPECT_THAT(expand("*.1").value(), ElementsAre(Pair(0, 1), Pair(1, 1), Pair(2, 1)));
  EXPECT_THAT(expand("1-2.1").value(), ElementsAre(Pair(1, 1), Pair(2, 1)));
  EXPECT_THAT(expand("0.0-1").value(), ElementsAre(Pair(0, 0), Pair(0, 1)));
  EXPECT_EQ(expand("*.*").value().size(), 6u);
}

TEST(HeadSetTest, HeadsThatAModelLacksAreNoSetOfIt) {
  for (const char* text : {"3.0", "0.2", "3.*", "*.2", "0.0+99.0", "1-3.0", "0.1-2"}) {
    EXPECT_FALSE(ExpandHeadSet(ParseHeadSet(text).value(), 3, 2).has_value()) << text;
  }
}

TEST(HeadSetTest, WhatIsNoSetIsRefused) {
  for (const char* text :
       {"",     "0",       "0.",      ".0",        "0.0.0",   "a.0",       "-1.0",
        "0.-1", "+1.0",    "00.0",    "0.01",      " 0.0",    "0.0 + 1.0", "0.0+",
        "**.0", "0.0+0.0", "1.*+1.*", "9999999.0", "0.0,1.0", "1-1.0",     "2-1.0",
        "1-.0", "-2.0",    "0-1-2.0", "0-*.0"}) {
    EXPECT_FALSE(ParseHeadSet(text).has_value()) << text;
  }
}

TEST(HeadSetTest, TheOrderOfPartsDoesNotMatter) {
  EXPECT_EQ(ParseHeadSet("1.0+0.1"), ParseHeadSet("0.1+1.0"));
}

}  // namespace
}  // namespace hopscope::spec

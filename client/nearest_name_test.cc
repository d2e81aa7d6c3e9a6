#include "client/nearest_name.h"

#include "gtest/gtest.h"

namespace hopscope::client {
namespace {

TEST(NearestNameTest, FindsTyposOfEveryKind) {
  const std::vector<std::string> known = {"tasks", "scorers", "added_tokens", "hops"};
  EXPECT_EQ(NearestName("task", known), "tasks");
  EXPECT_EQ(NearestName("scoers", known), "scorers");
  EXPECT_EQ(NearestName("added-tokens", known), "added_tokens");
  EXPECT_EQ(NearestName("hpos", known), "hops");
  EXPECT_EQ(NearestName("hops", known), "hops");
}

TEST(NearestNameTest, SaysNothingWhereNothingIsNear) {
  EXPECT_EQ(NearestName("temperature", {"tasks", "hops"}), "");
  EXPECT_EQ(NearestName("", {"hops"}), "");
  EXPECT_EQ(NearestName("x", {}), "");
  EXPECT_EQ(NearestName(std::string(100000, 'a'), {"hops"}), "");
}

}  // namespace
}  // namespace hopscope::client

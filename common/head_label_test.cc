#include "common/head_label.h"

#include "gtest/gtest.h"

namespace hopscope::common {
namespace {

HeadLabel Label(double positional, double symbolic, double gamma) {
  return LabelOf({.positional = positional, .symbolic = symbolic}, gamma);
}

TEST(HeadLabelTest, FollowsTheRuleAtItsEdges) {
  EXPECT_EQ(Label(0.95, 0.05, 0.1), HeadLabel::kPositional);
  EXPECT_EQ(Label(0.9, 0.1, 0.1), HeadLabel::kPositional) << "both edges belong to it";
  EXPECT_EQ(Label(0.05, 0.95, 0.1), HeadLabel::kSymbolic);
  EXPECT_EQ(Label(0.1, 0.9, 0.1), HeadLabel::kSymbolic);
  EXPECT_EQ(Label(0.95, 0.95, 0.1), HeadLabel::kDiffuse);
  EXPECT_EQ(Label(0.9, 0.95, 0.1), HeadLabel::kMixed) << "diffuse is strictly above";
  EXPECT_EQ(Label(0.5, 0.5, 0.1), HeadLabel::kMixed);
  EXPECT_EQ(Label(0.89, 0.05, 0.1), HeadLabel::kMixed);
  EXPECT_EQ(Label(0.89, 0.05, 0.2), HeadLabel::kPositional);
}

TEST(HeadLabelTest, SwapsThatMoveTooLittleGiveNoName) {
  LabelledScores scores{.positional = 0.95, .symbolic = 0.05, .swapped_mass = 0.0099};
  EXPECT_EQ(LabelOf(scores, 0.1), HeadLabel::kUnidentified);
  scores.swapped_mass = 0.01;
  EXPECT_EQ(LabelOf(scores, 0.1), HeadLabel::kPositional);
  scores.contrast = 0.099;
  EXPECT_EQ(LabelOf(scores, 0.1), HeadLabel::kUnidentified);
  scores.contrast = 0.1;
  EXPECT_EQ(LabelOf(scores, 0.1), HeadLabel::kPositional);
}

TEST(HeadLabelTest, NamesDiffer) {
  EXPECT_EQ(LabelName(HeadLabel::kUnidentified), "unidentified");
  EXPECT_EQ(LabelName(HeadLabel::kMixed), "mixed");
  EXPECT_EQ(ShortLabelName(HeadLabel::kDiffuse), "dif");
  EXPECT_EQ(ShortLabelName(HeadLabel::kMixed), "mix");
}

}  // namespace
}  // namespace hopscope::common

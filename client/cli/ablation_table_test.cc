#include "client/cli/ablation_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "client/cli/text_table.h"

namespace hopscope::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

v1::HeadScores Drops(const std::string& kind, const std::string& heads, int hops,
                     const std::vector<double>& means, double error = 0.01) {
  v1::HeadScores scores;
  scores.mutable_cell()->set_checkpoint("m");
  scores.mutable_cell()->set_task("number");
  scores.mutable_cell()->set_hops(hops);
  scores.set_scorer("ablation");
  scores.set_metric("accuracy_drop");
  auto& params = *scores.mutable_params()->mutable_fields();
  params["kinds"].set_string_value(kind);
  params["heads"].set_string_value(heads);
  if (heads == "each") {
    scores.set_layers(static_cast<int>(means.size()) / 2);
    scores.set_heads(2);
  }
  for (const double mean : means) {
    scores.add_mean(mean);
    scores.add_standard_error(error);
    scores.add_items(100);
  }
  return scores;
}

TEST(AblationTableTest, SaysWhatTheTaskNeedsAndHowTheHeadsWork) {
  const auto tables = AblationTables(
      {Drops("zero", "0-3.*", 1, {0.7}), Drops("zero", "4-7.*", 1, {0.01}),
       Drops("positional_only", "0-3.*", 1, {0.0}), Drops("positional_only", "4-7.*", 1, {0.0}),
       Drops("symbolic_only", "0-3.*", 1, {0.8}), Drops("symbolic_only", "4-7.*", 1, {0.0}),
       Drops("zero", "0-3.*", 2, {0.9}), Drops("zero", "4-7.*", 2, {0.02}),
       Drops("positional_only", "0-3.*", 2, {0.03}), Drops("positional_only", "4-7.*", 2, {0.0}),
       Drops("symbolic_only", "0-3.*", 2, {0.85}), Drops("symbolic_only", "4-7.*", 2, {0.0})},
      400);
  ASSERT_THAT(tables, SizeIs(1));
  EXPECT_THAT(tables[0], HasSubstr("n = 100 sequences a cell"));
  EXPECT_THAT(tables[0], HasSubstr("1 hop"));
  EXPECT_THAT(tables[0], HasSubstr("0.9000 \xc2\xb1"
                                   "0.0100"));
  EXPECT_THAT(tables[0], HasSubstr("number needs heads 0-3.*: without them, accuracy drops by up "
                                   "to 0.900 \xc2\xb1"
                                   "0.010."));
  EXPECT_THAT(tables[0], HasSubstr("0-3.* can go by position alone (drop up to 0.030"));
  EXPECT_THAT(tables[0], HasSubstr("not by content alone (0.850"));
  EXPECT_THAT(tables[0], HasSubstr("It does without 4-7.* (drop at most 0.020"));
}

TEST(AblationTableTest, TheSentenceFollowsTheNumbers) {
  const auto sentence = [](double positional, double symbolic) {
    return AblationTables(
        {Drops("zero", "0.0", 1, {0.5}), Drops("positional_only", "0.0", 1, {positional}),
         Drops("symbolic_only", "0.0", 1, {symbolic})},
        400)[0];
  };
  EXPECT_THAT(sentence(0.4, 0), HasSubstr("can go by content alone"));
  EXPECT_THAT(sentence(0.4, 0.4), HasSubstr("can go neither by position alone"));
  EXPECT_THAT(sentence(0, 0), HasSubstr("can go by either alone"));
}

TEST(AblationTableTest, ADropWithinItsErrorIsNoNeed) {
  EXPECT_THAT(AblationTables({Drops("zero", "0.0", 1, {0.2}, 0.15)}, 400)[0],
              HasSubstr("needs none of these heads by itself"));
  EXPECT_THAT(AblationTables({Drops("zero", "0.0", 1, {0.2}, 0.05)}, 400)[0],
              HasSubstr("needs heads 0.0"));
  // A drop of exactly 0 has no error; a small one does not count however sure it is.
  EXPECT_THAT(AblationTables({Drops("zero", "0.0", 1, {0.04}, 0)}, 400)[0],
              HasSubstr("needs none"));
}

TEST(AblationTableTest, OfSingleHeadsOnlyThoseThatCountAreShown) {
  const auto tables = AblationTables({Drops("zero", "each", 1, {0, 0.01, 0.6, 0})}, 120);
  ASSERT_THAT(tables, SizeIs(1));
  EXPECT_THAT(tables[0], HasSubstr("\n  1.0    zero"));
  EXPECT_THAT(tables[0], Not(HasSubstr("\n  0.0 ")));
  EXPECT_THAT(tables[0], HasSubstr("left out: 3 heads"));
  EXPECT_THAT(tables[0], HasSubstr("It does without any one of 0.0, 0.1, 1.1"));
}

TEST(AblationTableTest, KeepsToTheWidth) {
  std::vector<v1::HeadScores> scores;
  for (int hops = 1; hops <= 9; ++hops) {
    for (const char* kind : {"zero", "positional_only", "symbolic_only"}) {
      scores.push_back(Drops(kind, "0-11.*+13.0", hops, {0.5}));
    }
  }
  for (const size_t width : {60, 80, 120}) {
    const auto tables = AblationTables(scores, width);
    std::istringstream lines(tables[0]);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(DisplayWidth(line), width) << line;
  }
}

TEST(AblationTableTest, ShowsDropsOnly) {
  v1::HeadScores loss = Drops("zero", "0.0", 1, {0.5});
  loss.set_metric("loss_rise");
  EXPECT_FALSE(IsAblationDrop(loss));
  EXPECT_THAT(AblationTables({loss}, 100), SizeIs(0));
}

}  // namespace
}  // namespace hopscope::cli

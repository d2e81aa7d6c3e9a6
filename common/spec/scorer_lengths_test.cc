#include "common/spec/scorer_lengths.h"

#include "common/spec/catalog.h"
#include "common/spec/scorer_params.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::ScorerSpec Scores(const std::string& param = "", const std::string& value = "") {
  v1::ScorerSpec scorer;
  scorer.set_name("positional_symbolic");
  if (!param.empty()) {
    (*scorer.mutable_params()->mutable_fields())[param].set_string_value(value);
  }
  EXPECT_TRUE(NormalizeScorerParams("scorers[0]", &scorer).ok());
  return scorer;
}

std::string ModeAt(const v1::ScorerSpec& scorer, int64_t tokens) {
  return ScorerAtLength(scorer, tokens).params().fields().at("mode").string_value();
}

TEST(ScorerAtLengthTest, AutoSwapsSingleKeysUpTo64OfThem) {
  EXPECT_EQ(ModeAt(Scores(), 17), "tokens");
  EXPECT_EQ(ModeAt(Scores(), 65), "tokens");
  EXPECT_EQ(ModeAt(Scores(), 66), "blocks");
}

TEST(ScorerAtLengthTest, WhatWasChosenStays) {
  EXPECT_EQ(ModeAt(Scores("mode", "tokens"), 5000), "tokens");
  EXPECT_EQ(ModeAt(Scores("mode", "blocks"), 17), "blocks");
  v1::ScorerSpec accuracy;
  accuracy.set_name("accuracy");
  EXPECT_EQ(ScorerAtLength(accuracy, 100).DebugString(), accuracy.DebugString());
}

TEST(ScorerAtLengthTest, ResultsNameTheNumberOfBlocksWhereThereAreBlocks) {
  const auto short_ones = ResultParams(ScorerAtLength(Scores(), 17));
  EXPECT_EQ(short_ones[0].fields().count("blocks"), 0u);
  const auto long_ones = ResultParams(ScorerAtLength(Scores(), 300));
  EXPECT_EQ(long_ones[0].fields().at("blocks").number_value(), 16);
}

TEST(ScorerAtLengthTest, BlocksThatNothingIsCutIntoDoNotTellScorersApart) {
  v1::ScorerSpec other = Scores("mode", "tokens");
  (*other.mutable_params()->mutable_fields())["blocks"].set_number_value(8);
  EXPECT_TRUE(ScorersOverlap(Scores("mode", "tokens"), other));
  (*other.mutable_params()->mutable_fields())["mode"].set_string_value("blocks");
  EXPECT_FALSE(ScorersOverlap(Scores("mode", "blocks"), other));
}

TEST(ResultMetricsTest, AreTheSelectedOnesInTheOrderOfTheCatalog) {
  EXPECT_THAT(ResultMetrics(Scores()), ElementsAre("positional", "symbolic", "self_mass"));
  v1::ScorerSpec scorer = Scores();
  auto* list = (*scorer.mutable_params()->mutable_fields())["metrics"].mutable_list_value();
  list->clear_values();
  for (const char* metric : {"keys", "positional"}) list->add_values()->set_string_value(metric);
  EXPECT_THAT(ResultMetrics(scorer), ElementsAre("positional", "keys"));
  scorer.set_name("nothing");
  EXPECT_THAT(ResultMetrics(scorer), ElementsAre());
}

TEST(CheckScorerLengthTest, EveryQueryOfALongSequenceIsRefusedWithItsCost) {
  EXPECT_TRUE(CheckScorerLength("scorers[0]", Scores("queries", "all"), 513).ok());
  EXPECT_TRUE(CheckScorerLength("scorers[0]", Scores(), 5000).ok());
  EXPECT_TRUE(CheckScorerLength("scorers[0]", Scores("queries", "hops"), 5000).ok());
  const absl::Status refused = CheckScorerLength("scorers[0]", Scores("queries", "all"), 514);
  EXPECT_EQ(common::ErrorReason(refused), "LIMIT_EXCEEDED");
  EXPECT_THAT(refused.message(), HasSubstr("scorers[0].params.queries"));
  EXPECT_THAT(refused.message(), HasSubstr("2.3e+07 pairs of keys"));
}

}  // namespace
}  // namespace hopscope::spec

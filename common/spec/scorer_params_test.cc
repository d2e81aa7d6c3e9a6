#include "common/spec/scorer_params.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::spec {
namespace {

v1::ScorerSpec Normalized(const std::string& name, const std::vector<double>& taus = {}) {
  v1::ScorerSpec scorer;
  scorer.set_name(name);
  for (const double tau : taus) {
    (*scorer.mutable_params()->mutable_fields())["taus"]
        .mutable_list_value()
        ->add_values()
        ->set_number_value(tau);
  }
  const absl::Status status = NormalizeScorerParams("scorer", &scorer);
  EXPECT_TRUE(status.ok()) << status;
  return scorer;
}

TEST(ResultParamsTest, GivesOneSetForEachValueOfAList) {
  const std::vector<google::protobuf::Struct> sets =
      ResultParams(Normalized("positional_symbolic", {1, 1e-4}));
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(sets[0].fields().at("taus").number_value(), 1);
  EXPECT_EQ(sets[1].fields().at("taus").number_value(), 1e-4);
  for (const google::protobuf::Struct& set : sets) {
    EXPECT_EQ(set.fields_size(), 5) << "all but the list of metrics";
    EXPECT_EQ(set.fields().at("queries").string_value(), "last");
    EXPECT_EQ(set.fields().at("mode").string_value(), "auto");
  }
}

TEST(ResultParamsTest, GivesOneEmptySetForAScorerWithoutParameters) {
  const std::vector<google::protobuf::Struct> sets = ResultParams(Normalized("accuracy"));
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_EQ(sets[0].fields_size(), 0);
}

TEST(ScorersOverlapTest, WhereOneResultWouldComeTwice) {
  const v1::ScorerSpec scores = Normalized("positional_symbolic", {1e-4, 1});
  EXPECT_TRUE(ScorersOverlap(scores, scores));
  EXPECT_TRUE(ScorersOverlap(scores, Normalized("positional_symbolic")));
  EXPECT_TRUE(ScorersOverlap(scores, Normalized("positional_symbolic", {2, 1})));
  EXPECT_FALSE(ScorersOverlap(scores, Normalized("positional_symbolic", {2, 3})));
  EXPECT_FALSE(ScorersOverlap(scores, Normalized("accuracy")));
  EXPECT_TRUE(ScorersOverlap(Normalized("accuracy"), Normalized("accuracy")));
}

}  // namespace
}  // namespace hopscope::spec

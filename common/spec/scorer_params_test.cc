#include "common/spec/scorer_params.h"

#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::spec {
namespace {

using ::testing::HasSubstr;

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

v1::ScorerSpec WithHeads(const google::protobuf::Value& heads) {
  v1::ScorerSpec scorer;
  scorer.set_name("ablation");
  (*scorer.mutable_params()->mutable_fields())["heads"] = heads;
  return scorer;
}

google::protobuf::Value Texts(const std::vector<std::string>& texts) {
  google::protobuf::Value value;
  value.mutable_list_value();
  for (const std::string& text : texts) {
    value.mutable_list_value()->add_values()->set_string_value(text);
  }
  return value;
}

TEST(HeadSetsTest, AreEachHeadUnlessSetsAreGiven) {
  const v1::ScorerSpec each = Normalized("ablation");
  EXPECT_EQ(each.params().fields().at("heads").string_value(), "each");
  EXPECT_TRUE(ScoresEachHead(each));
  EXPECT_EQ(ResultParams(each).size(), 1u);
  v1::ScorerSpec sets = WithHeads(Texts({"0.0", "1.*+0.0"}));
  ASSERT_TRUE(NormalizeScorerParams("s", &sets).ok());
  EXPECT_FALSE(ScoresEachHead(sets));
  const auto results = ResultParams(sets);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1].fields().at("heads").string_value(), "1.*+0.0");
  EXPECT_EQ(results[1].fields().at("kinds").string_value(), "zero");
  EXPECT_FALSE(ScorersOverlap(each, sets));
  EXPECT_TRUE(ScorersOverlap(sets, sets));
}

TEST(HeadSetsTest, WrongOnesAreNamed) {
  const auto error = [](const google::protobuf::Value& heads) {
    v1::ScorerSpec scorer = WithHeads(heads);
    return NormalizeScorerParams("s", &scorer);
  };
  google::protobuf::Value number;
  number.set_number_value(0.5);
  EXPECT_EQ(common::ErrorReason(error(number)), "TYPE_MISMATCH");
  google::protobuf::Value text;
  text.set_string_value("0.0");
  EXPECT_EQ(common::ErrorReason(error(text)), "TYPE_MISMATCH");
  EXPECT_EQ(common::ErrorReason(error(Texts({}))), "FIELD_MISSING");
  EXPECT_EQ(common::ErrorReason(error(Texts({"0.0", "0"}))), "VALUE_OUT_OF_RANGE");
  EXPECT_THAT(std::string(error(Texts({"0.0", "0"})).message()), HasSubstr("s.params.heads[1]"));
  EXPECT_EQ(common::ErrorReason(error(Texts({"0.0+1.0", "1.0+0.0"}))), "VALUE_DUPLICATE");
  google::protobuf::Value mixed = Texts({"0.0"});
  *mixed.mutable_list_value()->add_values() = number;
  EXPECT_EQ(common::ErrorReason(error(mixed)), "TYPE_MISMATCH");
  EXPECT_EQ(common::ErrorReason(error(Texts(std::vector<std::string>(65, "0.0")))),
            "LIMIT_EXCEEDED");
}

}  // namespace
}  // namespace hopscope::spec

#include "server/jobs/plausibility.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "common/spec/scorer_params.h"
#include "common/status.h"
#include "gtest/gtest.h"
#include "server/jobs/testing/fake_worker.h"

namespace hopscope::jobs {
namespace {

constexpr int64_t kItems = 10;

class PlausibilityTest : public ::testing::Test {
 protected:
  PlausibilityTest() {
    task_.set_task("number");
    task_.add_scorers()->set_name("accuracy");
    v1::ScorerSpec* scores = task_.add_scorers();
    scores->set_name("positional_symbolic");
    EXPECT_TRUE(spec::NormalizeScorerParams("scorer", scores).ok());
    checkpoint_.layers = 2;
    checkpoint_.heads = 2;
    v1::WorkUnit unit;
    unit.set_item_count(kItems);
    *unit.mutable_scorers() = task_.scorers();
    result_ = testing::ComputeUnit(unit);
  }

  absl::Status Check() const { return CheckUnitResult(result_, kItems, task_, checkpoint_); }

  v1::TaskSpec task_;
  store::CheckpointRow checkpoint_;
  v1::UnitResult result_;
};

TEST_F(PlausibilityTest, AGoodResultPasses) { EXPECT_TRUE(Check().ok()) << Check(); }

TEST_F(PlausibilityTest, AResultWithoutItemsNeedsNoScores) {
  result_.Clear();
  result_.set_kind("cpu");
  result_.set_items_failed(kItems);
  EXPECT_TRUE(Check().ok()) << Check();
}

TEST_F(PlausibilityTest, HeadsMayLackValuesOfSomeItems) {
  result_.mutable_scores(0)->set_count(1, kItems - 3);
  result_.mutable_scores(0)->set_count(2, 0);
  result_.mutable_scores(0)->set_mean(2, std::nan(""));
  EXPECT_TRUE(Check().ok()) << Check();
}

TEST_F(PlausibilityTest, AMetricMayHaveItsExtremes) {
  *result_.mutable_scores(0)->mutable_min() = result_.scores(0).mean();
  *result_.mutable_scores(0)->mutable_max() = result_.scores(0).mean();
  EXPECT_TRUE(Check().ok()) << Check();
}

TEST_F(PlausibilityTest, EveryValueOfAListedParameterHasItsOwnScores) {
  auto* taus =
      (*task_.mutable_scorers(1)->mutable_params()->mutable_fields())["taus"].mutable_list_value();
  taus->add_values()->set_number_value(0.1);
  EXPECT_FALSE(Check().ok());
  const v1::UnitResult once = result_;
  for (const v1::ScoreMoments& score : once.scores()) *result_.add_scores() = score;
  EXPECT_FALSE(Check().ok()) << "the same value twice";
  for (int i = once.scores_size(); i < result_.scores_size(); ++i) {
    (*result_.mutable_scores(i)->mutable_params()->mutable_fields())["taus"].set_number_value(0.1);
  }
  EXPECT_TRUE(Check().ok()) << Check();
}

TEST_F(PlausibilityTest, ScoresOfWholeSequencesHaveNoHeads) {
  v1::ScorerSpec* loss = task_.add_scorers();
  loss->set_name("loss");
  ASSERT_TRUE(spec::NormalizeScorerParams("scorer", loss).ok());
  v1::WorkUnit unit;
  unit.set_item_count(kItems);
  *unit.mutable_scorers() = task_.scorers();
  result_ = testing::ComputeUnit(unit);
  ASSERT_TRUE(Check().ok()) << Check();
  v1::ScoreMoments& last = *result_.mutable_scores(result_.scores_size() - 1);
  ASSERT_EQ(last.scorer(), "loss");
  last.set_layers(1);
  last.set_heads(1);
  EXPECT_FALSE(Check().ok());
}

TEST_F(PlausibilityTest, WhatCannotBeIsRefused) {
  const v1::UnitResult good = result_;
  const std::vector<std::pair<std::string, std::function<void(v1::UnitResult&)>>> breakages = {
      {"no kind", [](auto& r) { r.clear_kind(); }},
      {"odd kind", [](auto& r) { r.set_kind("a\nb"); }},
      {"long kind", [](auto& r) { r.set_kind(std::string(1000, 'k')); }},
      {"too few items", [](auto& r) { r.set_items(kItems - 1); }},
      {"too many items", [](auto& r) { r.set_items_failed(1); }},
      {"negative items", [](auto& r) { r.set_items(-1), r.set_items_failed(kItems + 1); }},
      {"overflowing items",
       [](auto& r) {
         r.set_items(std::numeric_limits<int64_t>::max());
         r.set_items_failed(std::numeric_limits<int64_t>::max());
       }},
      {"more correct than items", [](auto& r) { r.set_correct(kItems + 1); }},
      {"negative correct", [](auto& r) { r.set_correct(-1); }},
      {"a missing metric", [](auto& r) { r.mutable_scores()->RemoveLast(); }},
      {"a metric twice", [](auto& r) { *r.add_scores() = r.scores(0); }},
      {"an unknown metric", [](auto& r) { r.mutable_scores(0)->set_metric("x"); }},
      {"other parameters",
       [](auto& r) {
         (*r.mutable_scores(0)->mutable_params()->mutable_fields())["mode"].set_string_value("x");
       }},
      {"another scorer", [](auto& r) { r.mutable_scores(0)->set_scorer("x"); }},
      {"other layers", [](auto& r) { r.mutable_scores(0)->set_layers(1); }},
      {"an empty flag", [](auto& r) { r.mutable_scores(0)->add_flags(""); }},
      {"many flags",
       [](auto& r) {
         for (int i = 0; i < 9; ++i) r.mutable_scores(0)->add_flags("x");
       }},
      {"other heads", [](auto& r) { r.mutable_scores(0)->set_heads(3); }},
      {"steps without values", [](auto& r) { r.mutable_scores(0)->set_steps(4); }},
      {"negative planes", [](auto& r) { r.mutable_scores(0)->set_planes(-1); }},
      {"too few means", [](auto& r) { r.mutable_scores(0)->mutable_mean()->RemoveLast(); }},
      {"too many counts", [](auto& r) { r.mutable_scores(0)->add_count(1); }},
      {"no sums of squares", [](auto& r) { r.mutable_scores(0)->clear_m2(); }},
      {"a count above the items", [](auto& r) { r.mutable_scores(0)->set_count(0, kItems + 1); }},
      {"a negative count", [](auto& r) { r.mutable_scores(0)->set_count(0, -1); }},
      {"a NaN", [](auto& r) { r.mutable_scores(0)->set_mean(0, std::nan("")); }},
      {"an infinity", [](auto& r) { r.mutable_scores(0)->set_m2(0, HUGE_VAL); }},
      {"a negative square", [](auto& r) { r.mutable_scores(0)->set_m2(0, -1e-3); }},
      {"too few smallest values", [](auto& r) { r.mutable_scores(0)->add_min(0); }},
      {"largest values alone",
       [](auto& r) { *r.mutable_scores(0)->mutable_max() = r.scores(0).mean(); }},
      {"extremes in the wrong order",
       [](auto& r) {
         *r.mutable_scores(0)->mutable_max() = r.scores(0).mean();
         *r.mutable_scores(0)->mutable_min() = r.scores(0).mean();
         r.mutable_scores(0)->set_min(1, 2);
       }},
      {"an extreme that is NaN",
       [](auto& r) {
         *r.mutable_scores(0)->mutable_max() = r.scores(0).mean();
         *r.mutable_scores(0)->mutable_min() = r.scores(0).mean();
         r.mutable_scores(0)->set_min(1, std::nan(""));
       }},
  };
  for (const auto& [what, breakage] : breakages) {
    result_ = good;
    breakage(result_);
    EXPECT_EQ(Check().code(), absl::StatusCode::kInternal) << what;
    EXPECT_EQ(common::ErrorReason(Check()), "INTERNAL") << what;
  }
}

}  // namespace
}  // namespace hopscope::jobs

#include "common/spec/scorer_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/spec/scorer_params.h"
#include "common/spec/testing/ablation_spec.h"
#include "common/status.h"

namespace hopscope::spec {
namespace {

using ::testing::HasSubstr;

v1::ScorerSpec Ablation(const std::vector<std::string>& kinds,
                        const std::vector<std::string>& sets = {}) {
  v1::ScorerSpec scorer = testing::AblationSpec(kinds, sets);
  const absl::Status status = NormalizeScorerParams("scorer", &scorer);
  EXPECT_TRUE(status.ok()) << status;
  return scorer;
}

checkpoint::Architecture Model() {
  checkpoint::Architecture a;
  a.layers = 3;
  a.heads = 2;
  a.position = checkpoint::PositionKind::kRotaryHalfSplit;
  return a;
}

TEST(CheckScorerFitsTest, EveryHeadOfASetMustBeThere) {
  EXPECT_TRUE(CheckScorerFits("s", Ablation({"zero"}, {"0.0", "2.1+1.*"}), Model(), "m").ok());
  EXPECT_TRUE(CheckScorerFits("s", Ablation({"zero"}), Model(), "m").ok());
  const absl::Status status =
      CheckScorerFits("s", Ablation({"zero"}, {"0.0", "2.0+2.2"}), Model(), "checkpoint \"x\"");
  EXPECT_EQ(common::ErrorReason(status), "VALUE_OUT_OF_RANGE");
  EXPECT_THAT(status.message(), HasSubstr("s.params.heads[1]"));
  EXPECT_THAT(status.message(), HasSubstr("\"2.0+2.2\""));
  EXPECT_THAT(status.message(),
              HasSubstr("checkpoint \"x\" has: layers 0 to 2, in each of them heads 0 to 1"));
}

TEST(CheckScorerFitsTest, CappedLogitsHaveNoMeansOverPositionsAndContents) {
  checkpoint::Architecture a = Model();
  a.attention_softcap = 50;
  EXPECT_TRUE(CheckScorerFits("s", Ablation({"zero", "mean"}), a, "m").ok());
  const absl::Status status = CheckScorerFits("s", Ablation({"zero", "symbolic_only"}), a, "m");
  EXPECT_EQ(common::ErrorReason(status), "COMBINATION_UNSUPPORTED");
  EXPECT_THAT(status.message(), HasSubstr("s.params.kinds[1]"));
}

TEST(CheckScorerFitsTest, FrequencyUseAsksForRotaryPositions) {
  v1::ScorerSpec scorer;
  scorer.set_name("frequency_use");
  ASSERT_TRUE(NormalizeScorerParams("scorer", &scorer).ok());
  checkpoint::Architecture a = Model();
  EXPECT_TRUE(CheckScorerFits("s", scorer, a, "m").ok());
  a.position = checkpoint::PositionKind::kAlibi;
  const absl::Status status = CheckScorerFits("s", scorer, a, "checkpoint \"x\"");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(common::ErrorReason(status), "POSITIONS_NOT_ROTARY");
  EXPECT_THAT(status.message(), HasSubstr("checkpoint \"x\""));
}

TEST(ScorerCaveatTest, SaysWherePositionIsPartOfTheContent) {
  checkpoint::Architecture a = Model();
  EXPECT_EQ(ScorerCaveat(Ablation({"symbolic_only"}), a), "");
  a.position = checkpoint::PositionKind::kLearned;
  EXPECT_THAT(ScorerCaveat(Ablation({"symbolic_only"}), a),
              HasSubstr("symbolic_only changes nothing"));
  EXPECT_EQ(ScorerCaveat(Ablation({"zero"}), a), "");
}

}  // namespace
}  // namespace hopscope::spec

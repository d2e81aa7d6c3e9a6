#include "common/spec/scorer_models.h"

#include <gtest/gtest.h>

#include "common/spec/catalog.h"
#include "common/status.h"

namespace hopscope::spec {
namespace {

TEST(ScorerModelsTest, FrequencyUseAsksForRotaryPositions) {
  const absl::Status status = CheckScorerModel("spec.scorers[1]", "frequency_use", {});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(common::ErrorReason(status), "POSITIONS_NOT_ROTARY");
  EXPECT_EQ(common::GetErrorInfo(status)->metadata().at("field"), "spec.scorers[1]");
}

TEST(ScorerModelsTest, ARotaryModelCanHaveEveryScorer) {
  for (const v1::ScorerCapability& scorer : Scorers()) {
    EXPECT_TRUE(CheckScorerModel("scorer", scorer.name(), {.rotary = true}).ok());
  }
}

}  // namespace
}  // namespace hopscope::spec

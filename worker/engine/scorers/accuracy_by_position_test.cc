#include "worker/engine/scorers/accuracy_by_position.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "worker/engine/scorers/moments.h"

namespace hopscope::engine {
namespace {

using ::testing::ElementsAre;

// The answer is token 1 and stands at slot `slot` of a window of 3 + 1 slots, behind `added`
// tokens.
Sequence AnswerAt(int32_t slot, int32_t added) {
  Sequence sequence;
  sequence.tokens.resize(added + 5);
  sequence.label = 1;
  sequence.target = added + slot;
  return sequence;
}

TEST(AccuracyByPositionTest, CountsAnItemAtTheSlotOfItsAnswerAlone) {
  v1::Window window;
  window.set_target(3);
  window.set_pre_target(1);
  ItemFailures failures(4);
  AccuracyByPosition scorer(window, 4, &failures);
  const std::vector<Sequence> sequences = {AnswerAt(0, 2), AnswerAt(2, 2), AnswerAt(2, 2),
                                           AnswerAt(1, 2)};
  const std::vector<int64_t> items = {0, 1, 2, 3};
  // Right, right, wrong, without a result.
  const std::vector<double> logits = {0, 1, 0, 5, 1, 0, 0, std::nan("")};
  const auto batch = scorer.StartBatch({.sequences = sequences, .items = items});
  batch->OnLogits({.float64 = true, .data = logits.data(), .rows = 4, .columns = 2, .stride = 2});
  EXPECT_FALSE(failures.failed(2));
  EXPECT_TRUE(failures.failed(3));
  const v1::ScoreMoments moments = MomentsOf(scorer.name(), scorer.tables()[0], failures);
  EXPECT_EQ(moments.steps(), 3);
  EXPECT_EQ(moments.layers(), 0);
  EXPECT_EQ(moments.heads(), 0);
  EXPECT_THAT(moments.count(), ElementsAre(1, 0, 2));
  EXPECT_THAT(moments.mean(), ElementsAre(1, 0, .5));
}

}  // namespace
}  // namespace hopscope::engine

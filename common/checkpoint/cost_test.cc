#include "common/checkpoint/cost.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::checkpoint {
namespace {

using ::testing::DoubleEq;

// The models of arXiv 2605.31558: GPT-J, 12 layers of one head.
Architecture PaperModel() {
  Architecture arch;
  arch.layers = 12;
  arch.heads = 1;
  arch.kv_heads = 1;
  arch.d_model = 128;
  arch.d_head = 128;
  arch.d_mlp = 512;
  arch.vocab_size = 137;
  arch.position = PositionKind::kRotaryInterleaved;
  return arch;
}

TEST(ForwardFlops, CountsAFullPassOfThePaperShape) {
  // 12 layers x 17 tokens x 2 (4 x 128^2 + 2 x 128 x 512), 12 x 4 x 128 x 17^2, 2 x 17 x 128 x 137.
  EXPECT_THAT(ForwardFlops(PaperModel(), 17, Outputs::kEveryPosition),
              DoubleEq(80216064.0 + 1775616.0 + 596224.0));
}

TEST(ForwardFlops, LeavesOutWhatTheLastQueryDoesNotNeed) {
  // 11 full layers; the last: keys and values of 17 tokens, everything else of one; one row of
  // logits.
  const double full_layers = 11 * (17 * 2.0 * 196608 + 4.0 * 128 * 17 * 17);
  const double last =
      17 * 2.0 * 2 * 128 * 128 + 2.0 * (2 * 128 * 128 + 2 * 128 * 512) + 4.0 * 128 * 17;
  EXPECT_THAT(ForwardFlops(PaperModel(), 17, Outputs::kLastPosition),
              DoubleEq(full_layers + last + 2.0 * 128 * 137));
}

TEST(ForwardFlops, EveryQueryNeedsOneRowOfLogits) {
  const Architecture arch = PaperModel();
  const double row = 2.0 * static_cast<double>(arch.d_model * arch.vocab_size);
  EXPECT_DOUBLE_EQ(ForwardFlops(arch, 17, Outputs::kEveryQuery),
                   ForwardFlops(arch, 17, Outputs::kEveryPosition) - 16 * row);
}

TEST(ForwardFlops, APassFromALaterLayerLeavesOutThoseBeforeIt) {
  const double layer = 17 * 2.0 * 196608 + 4.0 * 128 * 17 * 17;
  for (const Outputs outputs : {Outputs::kEveryPosition, Outputs::kLastPosition}) {
    EXPECT_THAT(ForwardFlops(PaperModel(), 17, outputs, 5),
                DoubleEq(ForwardFlops(PaperModel(), 17, outputs) - 5 * layer));
  }
}

TEST(ForwardFlops, OneTokenCostsTheSameEitherWay) {
  EXPECT_EQ(ForwardFlops(PaperModel(), 1, Outputs::kLastPosition),
            ForwardFlops(PaperModel(), 1, Outputs::kEveryPosition));
}

TEST(ForwardFlops, CountsGatesAndSharedKeys) {
  Architecture arch = PaperModel();
  arch.heads = 8;
  arch.d_head = 16;
  arch.kv_heads = 2;
  arch.gated_mlp = true;
  const double layer = 5 * 2.0 * (128 * 128 * 2 + 128 * 32 * 2 + 3 * 128 * 512) + 4.0 * 128 * 25;
  EXPECT_THAT(ForwardFlops(arch, 5, Outputs::kEveryPosition),
              DoubleEq(12 * layer + 5 * 2.0 * 128 * 137));
}

TEST(WeightBytes, CountsEveryMatrixOnce) {
  Architecture arch = PaperModel();
  EXPECT_EQ(WeightBytes(arch, 4), 4.0 * (12 * 196608 + 2 * 128 * 137));
  arch.tied_head = true;
  EXPECT_EQ(WeightBytes(arch, 2), 2.0 * (12 * 196608 + 128 * 137));
  arch.position = PositionKind::kLearned;
  arch.n_positions = 100;
  arch.learned_offset = 2;
  EXPECT_EQ(WeightBytes(arch, 2), 2.0 * (12 * 196608 + 128 * 137 + 102 * 128));
}

TEST(ForwardFlops, DoesNotOverflowForTheLargestConfigs) {
  Architecture arch = PaperModel();
  arch.layers = 1024;
  arch.heads = arch.kv_heads = 1024;
  arch.d_head = 1 << 14;
  arch.d_model = 1 << 20;
  arch.d_mlp = 1 << 22;
  arch.vocab_size = 1 << 24;
  EXPECT_GT(ForwardFlops(arch, 1 << 20, Outputs::kEveryPosition), 1e23);
}

}  // namespace
}  // namespace hopscope::checkpoint

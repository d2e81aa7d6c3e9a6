#include "worker/engine/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "worker/engine/model/forward_pass.h"

namespace hopscope::engine {
namespace {

using testing::ElementsAre;

checkpoint::Architecture Architecture(int64_t width) {
  checkpoint::Architecture a;
  a.layers = 2;
  a.heads = a.kv_heads = 1;
  a.d_model = a.d_head = width;
  a.d_mlp = 4 * width;
  a.vocab_size = 10;
  return a;
}

std::vector<Sequence> OfLengths(const std::vector<int>& lengths) {
  std::vector<Sequence> sequences(lengths.size());
  for (size_t i = 0; i < lengths.size(); ++i) sequences[i].tokens.resize(lengths[i], 1);
  return sequences;
}

TEST(MicroBatchTest, HoldsAsManySequencesAsRowsAllow) {
  const auto a = Architecture(128);
  EXPECT_EQ(MicroBatchSize(a, {}, 17), 16);
  EXPECT_EQ(MicroBatchSize(a, {}, 136), 2);
  EXPECT_EQ(MicroBatchSize(a, {}, 137), 1);
  EXPECT_EQ(MicroBatchSize(a, {}, 5017), 1);
  EXPECT_GT(MicroBatchSize(a, {.cuda = true}, 17), 16);
}

TEST(MicroBatchTest, StaysWithinMemoryForWideModels) {
  const auto a = Architecture(32768);
  const int64_t size = MicroBatchSize(a, {}, 17);
  EXPECT_GE(size, 1);
  EXPECT_LT(size, 16);
  EXPECT_LE(ForwardPass::BufferBytes(a, size * 17), int64_t{256} << 20);
  EXPECT_EQ(MicroBatchSize(a, {}, 4096), 1);
}

TEST(MicroBatchTest, EachHoldsOneLengthAndItemsKeepTheirOrder) {
  const std::vector<Sequence> sequences = OfLengths({100, 17, 100, 100, 17, 200, 100});
  const ListSource source(sequences);
  EXPECT_THAT(PlanMicroBatches(Architecture(128), {}, source),
              ElementsAre(ElementsAre(1, 4), ElementsAre(0, 2), ElementsAre(3, 6), ElementsAre(5)));
}

TEST(MicroBatchTest, NoItemsMakeNoBatches) {
  const ListSource source({});
  EXPECT_TRUE(PlanMicroBatches(Architecture(128), {}, source).empty());
}

}  // namespace
}  // namespace hopscope::engine

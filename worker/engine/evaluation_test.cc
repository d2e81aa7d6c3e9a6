#include "worker/engine/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "common/checkpoint/checkpoint.h"
#include "worker/engine/compute_pool.h"
#include "worker/engine/model/forward_pass.h"
#include "worker/engine/scorers/registry.h"
#include "worker/engine/sequence_source.h"
#include "worker/engine/testing/engine_fixture.h"

namespace hopscope::engine {
namespace {

using ::testing::ElementsAre;

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

// Items of many lengths, in one evaluation and each in one of its own.
TEST(EvaluateTest, ItemsOfMixedLengthsAreWhatTheyAreAloneBitForBit) {
  const auto root = testing::OpenRoot(testing::ShippedCheckpoints());
  v1::WorkUnit unit = testing::MakeUnit(*root, "number", 2, 0, 60);
  const auto made = TaskSource::Create(unit.sequences(), 0, 60);
  ASSERT_TRUE(made.ok()) << made.status();
  std::vector<int64_t> items(60);
  std::iota(items.begin(), items.end(), 0);
  std::vector<Sequence> sequences = *made->Make(items);
  for (size_t i = 0; i < sequences.size(); ++i) {
    auto& tokens = sequences[i].tokens;
    const std::vector<int32_t> window = tokens;
    // From 5 to 300 tokens, most lengths several times.
    tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(i * 7 % 13));
    if (i % 20 == 0) {
      while (tokens.size() < 283) tokens.insert(tokens.begin(), window.begin(), window.end());
    }
  }
  const auto opened = root->OpenCheckpoint("number/step-06750");
  ASSERT_TRUE(opened.ok()) << opened.status();
  ComputePool pool(2);
  for (const v1::Dtype dtype : {v1::DTYPE_FLOAT32, v1::DTYPE_BFLOAT16}) {
    const auto model = Model::Load(*opened, dtype);
    ASSERT_TRUE(model.ok()) << model.status();
    const auto score = [&](const std::vector<Sequence>& some) {
      const auto count = static_cast<int64_t>(some.size());
      ItemFailures failures(count);
      auto scorer =
          MakeScorer("scorer", unit.scorers(1), (*model)->architecture(), count, &failures);
      EXPECT_TRUE(scorer.ok()) << scorer.status();
      const ListSource source(some);
      EXPECT_TRUE(Evaluate({.model = model->get(), .source = &source, .scorers = {scorer->get()}},
                           &pool, nullptr)
                      .ok());
      return *std::move(scorer);
    };
    const auto together = score(sequences);
    for (size_t item = 0; item < sequences.size(); item += 6) {
      const auto alone = score({sequences[item]});
      for (size_t t = 0; t < alone->tables().size(); ++t) {
        const MetricTable& expected = alone->tables()[t];
        EXPECT_EQ(std::memcmp(together->tables()[t].item(static_cast<int64_t>(item)),
                              expected.item(0), expected.cells() * sizeof(double)),
                  0)
            << expected.metric() << " of item " << item << " in " << v1::Dtype_Name(dtype);
      }
    }
  }
}

}  // namespace
}  // namespace hopscope::engine

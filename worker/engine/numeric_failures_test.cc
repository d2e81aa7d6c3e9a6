// Items whose numbers are not finite: they fail by themselves, with a reason, and leave the others
// alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "common/checkpoint/checkpoint.h"
#include "worker/engine/compute_pool.h"
#include "worker/engine/evaluation.h"
#include "worker/engine/scorers/registry.h"
#include "worker/engine/sequence_source.h"
#include "worker/engine/testing/engine_fixture.h"

namespace hopscope::engine {
namespace {

using testing::CopiedRoot;
using ::testing::Each;

constexpr char kCheckpoint[] = "number/step-06750";
constexpr int32_t kSpoilt = 20;  // a letter of the Number task
constexpr int64_t kFirst = 500;
constexpr int64_t kItems = 200;

class NumericFailuresTest : public ::testing::TestWithParam<float> {
 protected:
  NumericFailuresTest() : unit_(testing::MakeUnit(*shipped_, "number", 2, 0, kItems)) {
    copy_.SetEmbedding(kCheckpoint, kSpoilt, GetParam());
    unit_.set_first_item(kFirst);
    const auto source = TaskSource::Create(unit_.sequences(), kFirst, kItems);
    std::vector<int64_t> items(kItems);
    for (int64_t i = 0; i < kItems; ++i) items[i] = i;
    sequences_ = *source->Make(items);
    for (int64_t i = 0; i < kItems; ++i) {
      const auto& tokens = sequences_[i].tokens;
      if (std::find(tokens.begin(), tokens.end(), kSpoilt) != tokens.end()) spoilt_.insert(i);
    }
  }

  const std::unique_ptr<checkpoint::ModelRoot> shipped_ =
      testing::OpenRoot(testing::ShippedCheckpoints());
  testing::CopiedRoot copy_;
  v1::WorkUnit unit_;
  std::vector<Sequence> sequences_;
  std::set<int64_t> spoilt_;  // items whose sequence holds the spoilt token
};

TEST_P(NumericFailuresTest, AreCountedAndNamed) {
  ASSERT_GT(spoilt_.size(), 0);
  ASSERT_LT(spoilt_.size(), kItems / 2);
  *unit_.mutable_checkpoint() = testing::MakeUnit(copy_.root(), "number", 2, 0, 1).checkpoint();
  const CancelFlag cancel;
  const auto result = testing::MakeEngine(&copy_.root(), 2)->Run(unit_, cancel, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->items_failed(), static_cast<int64_t>(spoilt_.size()));
  EXPECT_EQ(result->items(), kItems - static_cast<int64_t>(spoilt_.size()));
  EXPECT_EQ(result->correct(), result->items());
  ASSERT_GT(result->item_failures_size(), 1);
  EXPECT_EQ(result->item_failures(0).item(), kFirst + *spoilt_.begin());
  EXPECT_EQ(result->item_failures(1).item(), kFirst + *std::next(spoilt_.begin()));
  EXPECT_EQ(result->item_failures(0).failure().reason(), "NUMERIC");
  EXPECT_NE(result->item_failures(0).failure().message(), "");
  for (const v1::ScoreMoments& score : result->scores()) {
    EXPECT_THAT(score.count(), Each(result->items()));
    for (const double mean : score.mean()) EXPECT_TRUE(std::isfinite(mean));
  }
}

TEST_P(NumericFailuresTest, LeaveTheOthersOfTheirBatchBitForBit) {
  ComputePool pool(2);
  const ListSource source(sequences_);
  const auto score = [&](const checkpoint::ModelRoot& root, ItemFailures* failures) {
    const auto opened = root.OpenCheckpoint(kCheckpoint);
    EXPECT_TRUE(opened.ok()) << opened.status();
    const auto model = Model::Load(*opened, v1::DTYPE_FLOAT32);
    EXPECT_TRUE(model.ok()) << model.status();
    auto scorer =
        MakeScorer("scorer", unit_.scorers(1), (*model)->architecture(), kItems, failures);
    EXPECT_TRUE(scorer.ok()) << scorer.status();
    EXPECT_TRUE(Evaluate({.model = model->get(), .source = &source, .scorers = {scorer->get()}},
                         &pool, nullptr)
                    .ok());
    return *std::move(scorer);
  };
  ItemFailures none(kItems);
  ItemFailures some(kItems);
  const auto clean = score(*shipped_, &none);
  const auto spoilt = score(copy_.root(), &some);
  for (int64_t item = 0; item < kItems; ++item) {
    EXPECT_FALSE(none.failed(item));
    EXPECT_EQ(some.failed(item), spoilt_.contains(item)) << item;
    if (some.failed(item)) continue;
    for (size_t t = 0; t < clean->tables().size(); ++t) {
      const MetricTable& expected = clean->tables()[t];
      EXPECT_EQ(std::memcmp(spoilt->tables()[t].item(item), expected.item(item),
                            expected.cells() * sizeof(double)),
                0)
          << expected.metric() << " of item " << item;
    }
  }
}

// Sequences of different lengths are never padded: the padding token's row is not looked at.
TEST_P(NumericFailuresTest, DoNotComeFromTheTokenOfPadding) {
  copy_.SetEmbedding(kCheckpoint, 0, GetParam());
  std::vector<Sequence> mixed = sequences_;
  for (size_t i = 0; i < mixed.size(); ++i) {
    auto& tokens = mixed[i].tokens;
    tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(i % 9));
  }
  std::set<int64_t> spoilt;
  for (size_t i = 0; i < mixed.size(); ++i) {
    const auto& tokens = mixed[i].tokens;
    if (std::find(tokens.begin(), tokens.end(), kSpoilt) != tokens.end()) {
      spoilt.insert(static_cast<int64_t>(i));
    }
  }
  const auto opened = copy_.root().OpenCheckpoint(kCheckpoint);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const auto model = Model::Load(*opened, v1::DTYPE_FLOAT32);
  ASSERT_TRUE(model.ok()) << model.status();
  ItemFailures failures(kItems);
  const auto scorer =
      MakeScorer("scorer", unit_.scorers(1), (*model)->architecture(), kItems, &failures);
  ASSERT_TRUE(scorer.ok()) << scorer.status();
  ComputePool pool(2);
  const ListSource source(mixed);
  ASSERT_TRUE(Evaluate({.model = model->get(), .source = &source, .scorers = {scorer->get()}},
                       &pool, nullptr)
                  .ok());
  for (int64_t item = 0; item < kItems; ++item) {
    EXPECT_EQ(failures.failed(item), spoilt.contains(item)) << item;
  }
}

// One number of a layer spoils everything that goes through it.
TEST_P(NumericFailuresTest, OfALayerFailEveryItemAndSayWhy) {
  if (std::isfinite(GetParam())) GTEST_SKIP() << "a large number need not spoil anything";
  CopiedRoot copy;
  copy.SetWeight(kCheckpoint, checkpoint::WeightRole::kMlpDown, 5, GetParam());
  v1::WorkUnit unit = unit_;
  *unit.mutable_checkpoint() = testing::MakeUnit(copy.root(), "number", 2, 0, 1).checkpoint();
  for (const v1::Dtype dtype : {v1::DTYPE_FLOAT32, v1::DTYPE_BFLOAT16}) {
    unit.set_dtype(dtype);
    const CancelFlag cancel;
    const auto result = testing::MakeEngine(&copy.root(), 2)->Run(unit, cancel, nullptr);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->items_failed(), kItems);
    EXPECT_EQ(result->items(), 0);
    EXPECT_EQ(result->correct(), 0);
    ASSERT_GT(result->item_failures_size(), 0);
    EXPECT_EQ(result->item_failures(0).failure().reason(), "NUMERIC");
    EXPECT_THAT(result->item_failures(0).failure().message(), ::testing::HasSubstr("NaN"));
  }
}

INSTANTIATE_TEST_SUITE_P(Values, NumericFailuresTest,
                         ::testing::Values(std::numeric_limits<float>::quiet_NaN(),
                                           std::numeric_limits<float>::infinity(), 1e38f),
                         [](const auto& info) {
                           return std::isnan(info.param)   ? "NaN"
                                  : std::isinf(info.param) ? "Infinity"
                                                           : "Overflow";
                         });

}  // namespace
}  // namespace hopscope::engine

// The scorer "ablation" at work in the engine: what its numbers are, and what they do not depend
// on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "common/spec/testing/ablation_spec.h"
#include "google/protobuf/util/message_differencer.h"
#include "worker/engine/compute_pool.h"
#include "worker/engine/evaluation.h"
#include "worker/engine/head_means_cache.h"
#include "worker/engine/model/torch_runtime.h"
#include "worker/engine/scorers/head_means.h"
#include "worker/engine/scorers/registry.h"
#include "worker/engine/testing/engine_fixture.h"

namespace hopscope::engine {
namespace {

using google::protobuf::util::MessageDifferencer;
using spec::testing::AblationSpec;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::vector<std::string>& AllKinds() {
  static const auto& kinds =
      *new std::vector<std::string>{"zero", "mean", "positional_only", "symbolic_only"};
  return kinds;
}

class AblationTest : public ::testing::Test {
 protected:
  v1::WorkUnit Unit(const std::string& task, int hops, int added, int64_t items,
                    const v1::ScorerSpec& scorer) const {
    v1::WorkUnit unit = testing::MakeUnit(*root_, task, hops, added, items);
    unit.clear_scorers();
    unit.add_scorers()->set_name("loss");
    *unit.add_scorers() = scorer;
    return unit;
  }

  v1::UnitResult Run(const v1::WorkUnit& unit, int threads = 2) const {
    const CancelFlag cancel;
    auto result = testing::MakeEngine(root_.get(), threads)->Run(unit, cancel, nullptr);
    EXPECT_TRUE(result.ok()) << result.status();
    return *std::move(result);
  }

  // The score of a kind and set.
  static const v1::ScoreMoments& Find(const v1::UnitResult& result, const std::string& metric,
                                      const std::string& kind, const std::string& heads = "each") {
    for (const v1::ScoreMoments& score : result.scores()) {
      const auto& params = score.params().fields();
      if (score.scorer() == "ablation" && score.metric() == metric &&
          params.at("kinds").string_value() == kind && params.at("heads").string_value() == heads) {
        return score;
      }
    }
    ADD_FAILURE() << "no " << metric << " of " << kind << " " << heads;
    return v1::ScoreMoments::default_instance();
  }

  const std::unique_ptr<checkpoint::ModelRoot> root_ =
      testing::OpenRoot(testing::ShippedCheckpoints());
};

TEST_F(AblationTest, DropsAreTheDifferencesToTheWholeModel) {
  const v1::UnitResult result = Run(Unit("number", 2, 50, 40, AblationSpec(AllKinds())));
  const double accuracy =
      static_cast<double>(result.correct()) / static_cast<double>(result.items());
  ASSERT_EQ(result.scores(0).scorer(), "loss");
  EXPECT_EQ(result.scores(0).layers(), 0);
  ASSERT_EQ(result.scores(0).mean_size(), 1);
  const double loss = result.scores(0).mean(0);
  EXPECT_GT(loss, 0);
  for (const std::string& kind : AllKinds()) {
    const v1::ScoreMoments& ablated = Find(result, "accuracy", kind);
    ASSERT_EQ(ablated.layers(), 12);
    ASSERT_EQ(ablated.heads(), 1);
    ASSERT_THAT(ablated.mean(), SizeIs(12));
    EXPECT_THAT(ablated.count(), Each(40));
    for (int head = 0; head < 12; ++head) {
      EXPECT_NEAR(Find(result, "accuracy_drop", kind).mean(head), accuracy - ablated.mean(head),
                  1e-12);
      EXPECT_NEAR(Find(result, "loss_rise", kind).mean(head),
                  Find(result, "loss", kind).mean(head) - loss, 1e-10);
    }
  }
}

TEST_F(AblationTest, TheFirstLayersOfTheNumberModelGoByPositionAlone) {
  // Layers 0 to 3 are called positional (arXiv 2605.31558, Fig. 6).
  const std::string first = "0-3.*";
  const v1::UnitResult result =
      Run(Unit("number", 4, 0, 60, AblationSpec({"positional_only", "symbolic_only"}, {first})));
  ASSERT_EQ(result.correct(), 60);
  EXPECT_LT(Find(result, "accuracy_drop", "positional_only", first).mean(0), 0.05);
  EXPECT_GT(Find(result, "accuracy_drop", "symbolic_only", first).mean(0), 0.5);
}

TEST_F(AblationTest, SetsHaveOneResultEach) {
  const v1::UnitResult result =
      Run(Unit("letter", 1, 0, 30, AblationSpec({"zero", "mean"}, {"3.0", "0.*+3.0", "*.*"})));
  EXPECT_EQ(result.scores_size(), 1 + 4 * 2 * 3);
  for (const char* set : {"3.0", "0.*+3.0", "*.*"}) {
    const v1::ScoreMoments& drop = Find(result, "loss_rise", "mean", set);
    EXPECT_EQ(drop.layers(), 0);
    EXPECT_EQ(drop.heads(), 0);
    EXPECT_THAT(drop.mean(), SizeIs(1));
    EXPECT_THAT(drop.count(), Each(30));
  }
  // Without any attention the query token alone is left: it cannot know the answer.
  EXPECT_LT(Find(result, "accuracy", "zero", "*.*").mean(0), 0.5);
  // One head as a set is the head by itself.
  const v1::UnitResult each = Run(Unit("letter", 1, 0, 30, AblationSpec({"zero", "mean"})));
  for (const char* kind : {"zero", "mean"}) {
    EXPECT_EQ(Find(result, "loss", kind, "3.0").mean(0), Find(each, "loss", kind).mean(3));
    EXPECT_EQ(Find(result, "loss", kind, "3.0").m2(0), Find(each, "loss", kind).m2(3));
  }
}

TEST_F(AblationTest, ResultsDoNotDependOnThreadsNorOnWhatRanBefore) {
  const v1::WorkUnit unit = Unit("number", 3, 7, 50, AblationSpec(AllKinds()));
  const v1::UnitResult alone = Run(unit, 1);
  EXPECT_TRUE(MessageDifferencer::Equals(Run(unit, 3), alone));
  const auto engine = testing::MakeEngine(root_.get(), 2);
  const CancelFlag cancel;
  const v1::WorkUnit other = Unit("letter", 1, 7, 30, AblationSpec({"mean"}, {"0.0"}));
  ASSERT_TRUE(engine->Run(other, cancel, nullptr).ok());
  // The second run finds its means in the cache.
  for (int run = 0; run < 2; ++run) {
    const auto result = engine->Run(unit, cancel, nullptr);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(MessageDifferencer::Equals(*result, alone));
  }
}

TEST_F(AblationTest, AnItemHasTheSameNumbersWhereverItsUnitBegins) {
  // Micro-batches of one shape: items 0 .. 15 and 16 .. 31.
  const auto moments = [&](int64_t first, int64_t count) {
    v1::WorkUnit unit = Unit("number", 2, 0, count, AblationSpec({"mean"}, {"1.0"}));
    unit.set_first_item(first);
    return Find(Run(unit), "loss", "mean", "1.0");
  };
  const v1::ScoreMoments both = moments(0, 32);
  const v1::ScoreMoments first = moments(0, 16);
  const v1::ScoreMoments second = moments(16, 16);
  EXPECT_NEAR(both.mean(0), (first.mean(0) + second.mean(0)) / 2, 1e-12);
}

TEST_F(AblationTest, HeadsThatTheModelLacksAreAnError) {
  const CancelFlag cancel;
  const auto engine = testing::MakeEngine(root_.get(), 1);
  const auto result =
      engine->Run(Unit("number", 1, 0, 5, AblationSpec({"zero"}, {"12.0"})), cancel, nullptr);
  EXPECT_THAT(result.status().message(), HasSubstr("layers 0 to 11"));
}

class AblationNumericTest : public ::testing::TestWithParam<float> {};

TEST_P(AblationNumericTest, SpoiltItemsFailAndOthersStayFinite) {
  const auto shipped = testing::OpenRoot(testing::ShippedCheckpoints());
  testing::CopiedRoot copy;
  copy.SetEmbedding("number/step-06750", 20, GetParam());  // a letter of the Number task
  v1::WorkUnit unit = testing::MakeUnit(copy.root(), "number", 2, 0, 100);
  unit.clear_scorers();
  *unit.add_scorers() = AblationSpec(AllKinds());
  const CancelFlag cancel;
  const auto result = testing::MakeEngine(&copy.root(), 2)->Run(unit, cancel, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->items_failed(), 0);
  EXPECT_GT(result->items(), 50);
  EXPECT_EQ(result->item_failures(0).failure().reason(), "NUMERIC");
  for (const v1::ScoreMoments& score : result->scores()) {
    EXPECT_THAT(score.count(), Each(result->items())) << score.metric();
    for (const double mean : score.mean()) EXPECT_TRUE(std::isfinite(mean)) << score.metric();
  }
}

INSTANTIATE_TEST_SUITE_P(Values, AblationNumericTest,
                         ::testing::Values(std::numeric_limits<float>::quiet_NaN(),
                                           std::numeric_limits<float>::infinity()),
                         [](const auto& info) {
                           return std::isnan(info.param) ? "NaN" : "Infinity";
                         });

class HeadMeansTest : public ::testing::Test {
 protected:
  HeadMeansTest()
      : model_(*Model::Load(*root_->OpenCheckpoint("number/step-06750"), v1::DTYPE_FLOAT32)),
        unit_(testing::MakeUnit(*root_, "number", 2, 3, 1)) {}

  const std::unique_ptr<checkpoint::ModelRoot> root_ =
      testing::OpenRoot(testing::ShippedCheckpoints());
  const std::shared_ptr<const Model> model_;
  const v1::WorkUnit unit_;
  ComputePool pool_{2};
  CancelFlag cancel_;
};

// Outputs of the heads of every layer for the last token.
class LastOutputs : public ForwardObserver {
 public:
  Interest interest() const override { return {.attended = true}; }
  void OnAttended(int64_t, int64_t, const MatrixView& rows) override {
    const float* const row = rows.Row<float>(rows.rows - 1);
    values.emplace_back(row, row + rows.columns);
  }
  std::vector<std::vector<double>> values;
};

TEST_F(HeadMeansTest, AreThoseOfTheValidationSequencesOfTheCell) {
  const auto means = ComputeHeadMeans(*model_, unit_.sequences(), cancel_, &pool_);
  ASSERT_TRUE(means.ok()) << means.status();
  v1::SequenceSpec validation = unit_.sequences();
  validation.set_split(v1::SPLIT_VALIDATION);
  const auto source = TaskSource::Create(validation, 0, kHeadMeansItems);
  const auto& a = model_->architecture();
  std::vector<std::vector<double>> sums(a.layers, std::vector<double>(a.d_model, 0));
  UseOneTorchThread();
  ForwardPass pass;
  for (int64_t item = 0; item < kHeadMeansItems; ++item) {
    const auto sequence = source->Make({item});
    LastOutputs outputs;
    ASSERT_TRUE(pass.Run(*model_, {.sequences = 1,
                                   .tokens = 20,
                                   .ids = sequence->front().tokens.data(),
                                   .observer = &outputs})
                    .ok());
    for (int64_t layer = 0; layer < a.layers; ++layer) {
      for (int64_t c = 0; c < a.d_model; ++c) sums[layer][c] += outputs.values[layer][c];
    }
  }
  for (int64_t layer = 0; layer < a.layers; ++layer) {
    for (int64_t c = 0; c < a.d_model; ++c) {
      ASSERT_NEAR((*means)->Row(layer, 19)[c], sums[layer][c] / kHeadMeansItems, 1e-4) << layer;
    }
  }
}

TEST_F(HeadMeansTest, AreKeptWithinBounds) {
  const int64_t one = (*ComputeHeadMeans(*model_, unit_.sequences(), cancel_, &pool_))->bytes();
  HeadMeansCache cache(2 * one + one / 2);
  v1::SequenceSpec sequences = unit_.sequences();
  const auto get = [&](int hops) {
    sequences.set_hops(hops);
    return *cache.Get("digest", *model_, sequences, cancel_, &pool_);
  };
  const auto first = get(1);
  EXPECT_EQ(get(1), first);
  get(2);
  get(3);
  EXPECT_EQ(cache.KeptBytes(), 2 * one);
  const auto again = get(1);
  EXPECT_NE(again, first);
  EXPECT_EQ(std::memcmp(again->Row(0, 0), first->Row(0, 0), one), 0);
}

TEST_F(HeadMeansTest, ACancelledComputationLeavesNothingBehind) {
  HeadMeansCache cache(int64_t{1} << 30);
  CancelFlag cancelled;
  cancelled.Cancel();
  EXPECT_EQ(cache.Get("digest", *model_, unit_.sequences(), cancelled, &pool_).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(cache.KeptBytes(), 0);
  EXPECT_TRUE(cache.Get("digest", *model_, unit_.sequences(), cancel_, &pool_).ok());
}

TEST_F(HeadMeansTest, PartsThatComeInAnyOrderAreAddedInOrder) {
  const auto& a = model_->architecture();
  const auto part = [&](double value, int64_t items, int64_t finite) {
    return HeadMeansCollector::Part{
        .items = items,
        .finite = finite,
        .sums = std::vector<double>(a.layers * a.heads * a.d_head, value)};
  };
  HeadMeansCollector forward(a, 1);
  forward.Add(0, part(0.1, 2, 2));
  forward.Add(2, part(1e16, 2, 1));
  forward.Add(4, part(-1e16, 1, 1));
  HeadMeansCollector backward(a, 1);
  backward.Add(4, part(-1e16, 1, 1));
  backward.Add(2, part(1e16, 2, 1));
  backward.Add(0, part(0.1, 2, 2));
  EXPECT_EQ(forward.Finish().values(), backward.Finish().values());
}

// Cancels when the pass enters layer 0, before the ablation sees it.
class CancelAtOnce : public Scorer {
 public:
  explicit CancelAtOnce(CancelFlag* flag) : Scorer("cancel_at_once"), flag_(*flag) {}
  std::unique_ptr<BatchScorer> StartBatch(const ScoringBatch&) override {
    class Batch : public BatchScorer {
     public:
      Batch(CancelFlag* flag, std::atomic<int64_t>* layers) : flag_(*flag), layers_(*layers) {}
      Interest interest() const override { return {.residual = true}; }
      void OnResidual(int64_t, const MatrixView&) override {
        ++layers_;
        flag_.Cancel();
      }

     private:
      CancelFlag& flag_;
      std::atomic<int64_t>& layers_;
    };
    return std::make_unique<Batch>(&flag_, &layers);
  }
  std::atomic<int64_t> layers{0};

 private:
  CancelFlag& flag_;
};

TEST_F(HeadMeansTest, CancellingInsideAnAblationEndsItWithinALayer) {
  CancelFlag flag;
  CancelAtOnce cancels(&flag);
  ItemFailures failures(16);
  const auto scorer = MakeScorer("scorer", AblationSpec({"zero", "symbolic_only"}),
                                 model_->architecture(), 16, &failures);
  ASSERT_TRUE(scorer.ok()) << scorer.status();
  const auto source = TaskSource::Create(unit_.sequences(), 0, 13);
  EXPECT_EQ(Evaluate({.model = model_.get(),
                      .source = &*source,
                      .scorers = {&cancels, scorer->get()},
                      .cancel = &flag},
                     &pool_, nullptr)
                .code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(cancels.layers.load(), 1);
  // Not one ablation came to an end.
  for (int64_t item = 0; item < 13; ++item) {
    EXPECT_TRUE(std::isnan((*scorer)->tables()[0].item(item)[0]));
  }
}

}  // namespace
}  // namespace hopscope::engine

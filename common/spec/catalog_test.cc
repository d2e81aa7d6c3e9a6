#include "common/spec/catalog.h"

#include "common/spec/scorer_params.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::spec {
namespace {

using ::testing::ElementsAre;

TEST(CatalogTest, HasTheTasksOfThePapers) {
  ASSERT_EQ(Tasks().size(), 6u);
  EXPECT_EQ(Tasks()[0].name(), "number");
  EXPECT_EQ(Tasks()[0].vocab_size(), 137);
  EXPECT_THAT(Tasks()[0].paddings(), ElementsAre("random", "window", "constant"));
  EXPECT_EQ(Tasks()[1].name(), "letter");
  EXPECT_EQ(Tasks()[1].vocab_size(), 129);
  EXPECT_THAT(Tasks()[1].paddings(), ElementsAre("random", "pairs", "window", "constant"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Tasks()[i].max_hops(), 4);
    EXPECT_EQ(Tasks()[i].default_window().target(), 8);
    EXPECT_EQ(Tasks()[i].default_window().pre_target(), 8);
  }
  EXPECT_EQ(FindTask("index")->vocab_size(), 49);
  EXPECT_EQ(FindTask("retrieval")->vocab_size(), 297);
  EXPECT_EQ(FindTask("partial_induction")->vocab_size(), 297);
  for (const char* name : {"index", "retrieval", "partial_induction"}) {
    EXPECT_EQ(FindTask(name)->max_hops(), 1);
    EXPECT_EQ(FindTask(name)->default_window().target(), 16);
    EXPECT_EQ(FindTask(name)->default_window().pre_target(), 0);
  }
  EXPECT_FALSE(FindTask("tokens")->has_default_window());
  EXPECT_EQ(FindTask("tokens")->vocab_size(), 0);
  for (const v1::TaskCapability& task : Tasks()) {
    EXPECT_EQ(task.min_hops(), 1);
    EXPECT_FALSE(task.description().empty());
    EXPECT_EQ(FindTask(task.name()), &task);
  }
  EXPECT_EQ(FindTask("Number"), nullptr);
  EXPECT_EQ(FindTask(""), nullptr);
}

TEST(CatalogTest, HasTheScorersWithTheirParameters) {
  const v1::ScorerCapability* accuracy = FindScorer("accuracy");
  ASSERT_NE(accuracy, nullptr);
  EXPECT_EQ(accuracy->params_size(), 0);
  EXPECT_THAT(accuracy->metrics(), ElementsAre("correct"));
  const v1::ScorerCapability* scores = FindScorer("positional_symbolic");
  ASSERT_NE(scores, nullptr);
  EXPECT_THAT(scores->metrics(),
              ElementsAre("positional", "symbolic", "self_mass", "positional_centred",
                          "symbolic_centred", "swapped_mass", "contrast", "exclusion_rhs",
                          "logit_variance", "exclusion_slack", "keys"));
  ASSERT_EQ(scores->params_size(), 6);
  EXPECT_EQ(scores->params(0).name(), "taus");
  ASSERT_EQ(scores->params(0).default_value().list_value().values_size(), 1);
  EXPECT_EQ(scores->params(0).default_value().list_value().values(0).number_value(), 1e-4);
  EXPECT_EQ(scores->params(1).name(), "queries");
  EXPECT_EQ(scores->params(1).default_value().string_value(), "last");
  EXPECT_EQ(scores->params(2).name(), "mode");
  EXPECT_EQ(scores->params(2).default_value().string_value(), "auto");
  EXPECT_EQ(scores->params(3).name(), "blocks");
  EXPECT_EQ(scores->params(3).default_value().number_value(), 16);
  EXPECT_EQ(scores->params(4).name(), "eps");
  EXPECT_EQ(scores->params(4).default_value().number_value(), 0);
  EXPECT_EQ(scores->params(5).name(), "metrics");
  EXPECT_EQ(scores->params(5).default_value().list_value().values_size(), 3);
  const v1::ScorerCapability* ablation = FindScorer("ablation");
  ASSERT_NE(ablation, nullptr);
  EXPECT_THAT(ablation->metrics(), ElementsAre("accuracy", "loss", "accuracy_drop", "loss_rise"));
  ASSERT_EQ(ablation->params_size(), 2);
  EXPECT_EQ(ablation->params(1).name(), "heads");
  EXPECT_EQ(ablation->params(1).default_value().string_value(), "each");
  EXPECT_THAT(FindScorer("loss")->metrics(), ElementsAre("loss"));
  EXPECT_EQ(FindScorer("accurracy"), nullptr);
}

TEST(CatalogTest, LimitsOfZeroAreTheDefaults) {
  const v1::Limits& defaults = DefaultLimits();
  EXPECT_EQ(defaults.max_cells_per_job(), 100'000);
  EXPECT_EQ(defaults.max_samples_per_cell(), 10'000'000);
  EXPECT_EQ(defaults.max_added_tokens(), 5'000);
  EXPECT_EQ(defaults.max_units_per_job(), 10'000'000);
  EXPECT_EQ(defaults.max_message_bytes(), 4 * 1024 * 1024);
  EXPECT_EQ(CompleteLimits({}).SerializeAsString(), defaults.SerializeAsString());
  v1::Limits some;
  some.set_max_added_tokens(10);
  EXPECT_EQ(CompleteLimits(some).max_added_tokens(), 10);
  EXPECT_EQ(CompleteLimits(some).max_cells_per_job(), 100'000);
}

TEST(CatalogTest, SequenceLengthCountsAddedTokensWindowAndQuery) {
  v1::TaskSpec task;
  task.set_task("number");
  EXPECT_EQ(SequenceLength(task, 0), 17);
  EXPECT_EQ(SequenceLength(task, 850), 867);
  task.mutable_window()->set_target(4);
  task.mutable_window()->set_pre_target(3);
  EXPECT_EQ(SequenceLength(task, 100), 108);
  EXPECT_EQ(SequenceLength(task, INT32_MAX), int64_t{INT32_MAX} + 8);
}

}  // namespace
}  // namespace hopscope::spec

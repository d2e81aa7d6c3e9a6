#include "worker/engine/scorers/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/spec/catalog.h"
#include "common/spec/scorer_params.h"
#include "common/status.h"

namespace hopscope::engine {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

checkpoint::Architecture SmallArchitecture() {
  checkpoint::Architecture architecture;
  architecture.layers = 3;
  architecture.heads = 2;
  architecture.position = checkpoint::PositionKind::kRotaryInterleaved;
  architecture.rotary_dim = 4;
  return architecture;
}

TEST(ScorerRegistryTest, KnowsTheScorersOfTheCatalog) {
  std::vector<std::string> catalog;
  for (const v1::ScorerCapability& scorer : spec::Scorers()) catalog.push_back(scorer.name());
  EXPECT_THAT(ScorerNames(), ElementsAreArray(catalog));
}

TEST(ScorerRegistryTest, ScorersYieldTheMetricsOfTheCatalogForEachSetOfResultParameters) {
  ItemFailures failures(4);
  for (const v1::ScorerCapability& scorer : spec::Scorers()) {
    v1::ScorerSpec asked;
    asked.set_name(scorer.name());
    ItemShape shape;
    shape.window.set_target(8);
    const auto made = MakeScorer("scorers[0]", asked, SmallArchitecture(), 4, &failures, shape);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ((*made)->name(), scorer.name());
    ASSERT_TRUE(spec::NormalizeScorerParams("scorers[0]", &asked).ok());
    const auto params = spec::ResultParams(asked);
    std::vector<std::string> expected;
    for (const std::string& metric : spec::ResultMetrics(asked)) {
      for (size_t i = 0; i < std::max<size_t>(1, params.size()); ++i) expected.push_back(metric);
    }
    std::vector<std::string> metrics;
    for (const MetricTable& table : (*made)->tables()) metrics.push_back(table.metric());
    EXPECT_THAT(metrics, ElementsAreArray(expected));
  }
}

TEST(ScorerRegistryTest, TablesNameTheTemperatureTheyAreFor) {
  ItemFailures failures(1);
  v1::ScorerSpec asked;
  asked.set_name("positional_symbolic");
  auto* list = (*asked.mutable_params()->mutable_fields())["taus"].mutable_list_value();
  list->add_values()->set_number_value(0.5);
  list->add_values()->set_number_value(1e-4);
  const auto made = MakeScorer("scorers[0]", asked, SmallArchitecture(), 1, &failures);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ((*made)->tables().size(), 6);
  EXPECT_EQ((*made)->tables()[0].params().fields().at("taus").number_value(), 0.5);
  EXPECT_EQ((*made)->tables()[1].params().fields().at("taus").number_value(), 1e-4);
  EXPECT_EQ((*made)->tables()[1].params().fields().at("mode").string_value(), "auto");
  EXPECT_EQ((*made)->tables()[0].cells(), 6);
}

TEST(ScorerRegistryTest, AScorerThatTheModelCannotHaveIsRefused) {
  ItemFailures failures(1);
  v1::ScorerSpec asked;
  asked.set_name("frequency_use");
  checkpoint::Architecture architecture = SmallArchitecture();
  architecture.position = checkpoint::PositionKind::kAlibi;
  const auto made = MakeScorer("scorers[0]", asked, architecture, 1, &failures);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(common::ErrorReason(made.status()), "POSITIONS_NOT_ROTARY");
}

TEST(ScorerRegistryTest, UnknownNamesAndParametersAreRefused) {
  ItemFailures failures(1);
  v1::ScorerSpec asked;
  asked.set_name("positional");
  EXPECT_THAT(MakeScorer("scorers[0]", asked, SmallArchitecture(), 1, &failures).status().message(),
              HasSubstr("scorers[0].name"));
  asked.set_name("accuracy_by_position");
  EXPECT_THAT(MakeScorer("scorers[0]", asked, SmallArchitecture(), 1, &failures).status().message(),
              HasSubstr("have no window"));
  asked.set_name("positional_symbolic");
  (*asked.mutable_params()->mutable_fields())["mode"].set_string_value("words");
  EXPECT_THAT(MakeScorer("scorers[0]", asked, SmallArchitecture(), 1, &failures).status().message(),
              HasSubstr("scorers[0].params.mode"));
}

}  // namespace
}  // namespace hopscope::engine

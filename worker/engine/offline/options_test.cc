#include "worker/engine/offline/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/checkpoint/testing/write_checkpoint.h"
namespace hopscope::engine {
namespace {

using testing::HasSubstr;

TEST(OfflineOptionsTest, FillInWhatIsLeftOut) {
  const auto scorers = ParseScorers({"accuracy", "positional_symbolic"}, {}, {});
  ASSERT_TRUE(scorers.ok()) << scorers.status();
  ASSERT_EQ(scorers->size(), 2);
  const auto& fields = (*scorers)[1].params().fields();
  ASSERT_EQ(fields.at("taus").list_value().values_size(), 1);
  EXPECT_EQ(fields.at("taus").list_value().values(0).number_value(), 1e-4);
  EXPECT_EQ(fields.at("mode").string_value(), "auto");
}

TEST(OfflineOptionsTest, TausAndParametersArePassedOn) {
  const auto scorers =
      ParseScorers({"positional_symbolic"}, {0.05, 1}, {"positional_symbolic.queries=last"});
  ASSERT_TRUE(scorers.ok()) << scorers.status();
  EXPECT_EQ((*scorers)[0].params().fields().at("taus").list_value().values(1).number_value(), 1);
  EXPECT_EQ((*scorers)[0].params().fields().at("queries").string_value(), "last");
  const auto kinds = ParseScorers({"positional_symbolic"}, {},
                                  {"positional_symbolic.blocks=8", "positional_symbolic.eps=1e-8",
                                   "positional_symbolic.metrics=keys,contrast"});
  ASSERT_TRUE(kinds.ok()) << kinds.status();
  const auto& params = (*kinds)[0].params().fields();
  EXPECT_EQ(params.at("blocks").number_value(), 8);
  EXPECT_EQ(params.at("eps").number_value(), 1e-8);
  EXPECT_EQ(params.at("metrics").list_value().values_size(), 2);
  EXPECT_EQ(params.at("metrics").list_value().values(1).string_value(), "contrast");
  const auto list = ParseScorers({"positional_symbolic"}, {}, {"positional_symbolic.taus=0.5,2"});
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ((*list)[0].params().fields().at("taus").list_value().values(0).number_value(), 0.5);
}

TEST(OfflineOptionsTest, ParametersOfEveryKindCanBeGiven) {
  const auto scorers =
      ParseScorers({"attention_stats", "detectors", "frequency_use"}, {},
                   {"attention_stats.metrics=entropy,sink_mass_last", "attention_stats.window=4",
                    "detectors.form=abs", "detectors.exclude_bos=true", "frequency_use.tau=0.05"});
  ASSERT_TRUE(scorers.ok()) << scorers.status();
  const auto& stats = (*scorers)[0].params().fields();
  ASSERT_EQ(stats.at("metrics").list_value().values_size(), 2);
  EXPECT_EQ(stats.at("metrics").list_value().values(1).string_value(), "sink_mass_last");
  EXPECT_EQ(stats.at("window").number_value(), 4);
  const auto& detectors = (*scorers)[1].params().fields();
  EXPECT_EQ(detectors.at("form").string_value(), "abs");
  EXPECT_TRUE(detectors.at("exclude_bos").bool_value());
  EXPECT_FALSE(detectors.at("exclude_current_token").bool_value());
  EXPECT_EQ((*scorers)[2].params().fields().at("tau").number_value(), 0.05);
  for (const char* param : {"attention_stats.window=0", "attention_stats.window=a",
                            "attention_stats.metrics=entropy,entropy", "detectors.exclude_bos=1"}) {
    EXPECT_FALSE(ParseScorers({"attention_stats", "detectors"}, {}, {param}).ok()) << param;
  }
}

TEST(OfflineOptionsTest, WrongOnesAreNamed) {
  EXPECT_THAT(ParseScorers({}, {}, {}).status().message(), HasSubstr("--scorers"));
  EXPECT_THAT(ParseScorers({"magic"}, {}, {}).status().message(),
              HasSubstr("one of accuracy, accuracy_by_position, positional_symbolic"));
  EXPECT_THAT(ParseScorers({"accuracy", "accuracy"}, {}, {}).status().message(),
              HasSubstr("each scorer once"));
  EXPECT_THAT(ParseScorers({"accuracy"}, {0.5}, {}).status().message(), HasSubstr("--tau"));
  EXPECT_FALSE(ParseScorers({"positional_symbolic"}, {-1}, {}).ok());
  for (const char* param : {"mode=tokens", "positional_symbolic.mode",
                            "positional_symbolic.mode=", "accuracy.mode=tokens",
                            "positional_symbolic.colour=red", "positional_symbolic.taus=a",
                            "positional_symbolic.blocks=2,3", "positional_symbolic.blocks=2.5",
                            "positional_symbolic.metrics=all", "positional_symbolic.mode=words"}) {
    EXPECT_FALSE(ParseScorers({"positional_symbolic"}, {}, {param}).ok()) << param;
  }
  for (const char* name : {"float64", "float32", "bfloat16", "float16"}) {
    EXPECT_TRUE(ParseDtype(name).ok()) << name;
  }
  EXPECT_THAT(ParseDtype("half").status().message(), HasSubstr("bfloat16 or float16"));
}

TEST(OfflineOptionsTest, OutputMayNotReplaceTheTokensFile) {
  const checkpoint::testing::TempFolder folder;
  folder.Write("tokens.jsonl", "{}");
  const std::string tokens = folder.Path("tokens.jsonl");
  EXPECT_THAT(CheckOutput(tokens, folder.path() + "/./tokens.jsonl").message(),
              HasSubstr("--output"));
  EXPECT_TRUE(CheckOutput(tokens, folder.Path("new")).ok());
}

}  // namespace
}  // namespace hopscope::engine

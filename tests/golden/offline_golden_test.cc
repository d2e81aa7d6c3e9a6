// `inspect` and `score` through their files, against the reference data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/checkpoint/testing/write_checkpoint.h"
#include "common/status.h"
#include "tests/golden/golden_data.h"
#include "worker/engine/offline/inspect.h"
#include "worker/engine/offline/score.h"

namespace hopscope::golden {
namespace {

using checkpoint::testing::TempFolder;
using engine::RunInspect;
using engine::RunScore;
using testing::HasSubstr;

std::string Line(const std::vector<int64_t>& ids, const std::string& more = "") {
  return absl::StrCat("{\"tokens\":[", absl::StrJoin(ids, ","), "]", more, "}\n");
}

class OfflineTest : public testing::Test {
 protected:
  // The three sequences of a model, as lines 0, 1 and 2.
  void WriteThree(const Tensors& expected) {
    folder_.Write("tokens.jsonl", Line(expected.Integers("ids.5")) +
                                      Line(expected.Integers("ids.17")) +
                                      Line(expected.Integers("ids.33")));
  }

  const TempFolder folder_;
};

TEST_F(OfflineTest, InspectWritesLogitsHiddenAndAttention) {
  for (const char* name : {"gptj_1head", "gptj_partial", "gemma2", "gpt_neo_local"}) {
    const Tensors expected(GoldenPath(absl::StrCat("expected/", name, "/expected.safetensors")));
    WriteThree(expected);
    for (const char* dtype : {"float64", "float32"}) {
      const absl::Status status =
          RunInspect({.checkpoint = GoldenPath(absl::StrCat("models/", name)),
                      .tokens = folder_.Path("tokens.jsonl"),
                      .capture = {"hidden", "logits", "attention"},
                      .dtype = dtype,
                      .output = folder_.Path("out.safetensors")});
      ASSERT_TRUE(status.ok()) << status;
      const Tensors out(folder_.Path("out.safetensors"));
      const int lengths[] = {5, 17, 33};
      for (int i = 0; i < 3; ++i) {
        for (const auto& [got, want] :
             {std::pair{"logits", "logits"}, std::pair{"hidden", "hidden"},
              std::pair{"attention", "attn"}}) {
          const std::string got_name = absl::StrCat(got, ".", i);
          const std::string want_name = absl::StrCat(want, ".", lengths[i]);
          EXPECT_EQ(out.Shape(got_name), expected.Shape(want_name));
          if (std::string(dtype) == "float64") {
            EXPECT_LE(MaxDifference(out.Doubles(got_name), expected.Doubles(want_name)), 1e-10);
          }
        }
      }
    }
  }
}

TEST_F(OfflineTest, InspectWritesOnlyWhatIsAskedFor) {
  WriteThree(Tensors(GoldenPath("expected/gptj_1head/expected.safetensors")));
  ASSERT_TRUE(RunInspect({.checkpoint = GoldenPath("models/gptj_1head"),
                          .tokens = folder_.Path("tokens.jsonl"),
                          .capture = {"attention"},
                          .output = folder_.Path("out")})
                  .ok());
  const Tensors out(folder_.Path("out"));
  EXPECT_TRUE(out.Has("attention.2"));
  EXPECT_FALSE(out.Has("logits.0"));
  EXPECT_FALSE(out.Has("hidden.0"));
}

TEST_F(OfflineTest, InspectRefusesBadOptionsAndLeavesNoFile) {
  engine::InspectOptions good{.checkpoint = GoldenPath("models/gptj_1head"),
                              .tokens = folder_.Path("tokens.jsonl"),
                              .capture = {"logits"},
                              .output = folder_.Path("out")};
  folder_.Write("tokens.jsonl", "{\"tokens\":[1,2]}\n{\"tokens\":[1,100000]}\n");
  EXPECT_THAT(RunInspect(good).message(), HasSubstr("tokens.jsonl:2: tokens[1]"));
  folder_.Write("tokens.jsonl", "{\"tokens\":[1,2]}\n");
  engine::InspectOptions bad = good;
  bad.capture = {"colour"};
  EXPECT_THAT(RunInspect(bad).message(), HasSubstr("--capture"));
  bad.capture = {"logits", "logits"};
  EXPECT_THAT(RunInspect(bad).message(), HasSubstr("each once"));
  bad.capture = {};
  EXPECT_FALSE(RunInspect(bad).ok());
  bad = good;
  bad.dtype = "int8";
  EXPECT_THAT(RunInspect(bad).message(), HasSubstr("--dtype"));
  bad = good;
  bad.checkpoint = folder_.Path("nothing");
  EXPECT_FALSE(RunInspect(bad).ok());
  bad = good;
  bad.tokens = folder_.Path("nothing.jsonl");
  EXPECT_EQ(RunInspect(bad).code(), absl::StatusCode::kNotFound);
  bad = good;
  bad.output = folder_.Path("no/such/folder/out");
  EXPECT_EQ(common::ErrorReason(RunInspect(bad)), "OUTPUT_FAILED");
  engine::CancelFlag cancel;
  cancel.Cancel();
  bad = good;
  bad.cancel = &cancel;
  EXPECT_EQ(RunInspect(bad).code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("out")));
  EXPECT_TRUE(RunInspect(good).ok());
}

TEST_F(OfflineTest, ScoreWritesItemsAndMeans) {
  for (const char* name : {"gptj_partial", "llama_gqa", "bloom_h6"}) {
    WriteThree(Tensors(GoldenPath(absl::StrCat("expected/", name, "/expected.safetensors"))));
    const nlohmann::json expected =
        ReadJson(GoldenPath(absl::StrCat("expected/", name, "/scores.json")));
    engine::ScoreOptions options{.checkpoint = GoldenPath(absl::StrCat("models/", name)),
                                 .tokens = folder_.Path("tokens.jsonl"),
                                 .scorers = {"positional_symbolic"},
                                 .taus = {1e-4, 0.05, 1},
                                 .dtype = "float64",
                                 .output = folder_.Path("out.json"),
                                 .threads = 2};
    absl::Status status = RunScore(options);
    ASSERT_TRUE(status.ok()) << status;
    const nlohmann::json report = ReadJson(folder_.Path("out.json"));
    EXPECT_EQ(report.at("checkpoint"), options.checkpoint);
    EXPECT_EQ(report.at("items"), 3);
    EXPECT_TRUE(report.at("items_failed").empty());
    const nlohmann::json& taus = report.at("scorers").at("positional_symbolic").at("taus");
    ASSERT_EQ(taus.size(), 3);
    const char* const lengths[] = {"5", "17", "33"};
    for (size_t t = 0; t < 3; ++t) {
      EXPECT_EQ(taus[t].at("tau"), options.taus[t]);
      for (const auto& [got, want] :
           {std::pair{"positional", "pos"}, std::pair{"symbolic", "sym"}}) {
        const nlohmann::json& metric = taus[t].at(got);
        ASSERT_EQ(metric.at("per_item").size(), 3);
        for (size_t layer = 0; layer < metric.at("mean").size(); ++layer) {
          for (size_t head = 0; head < metric.at("mean")[layer].size(); ++head) {
            double sum = 0;
            for (int i = 0; i < 3; ++i) {
              const double value = metric.at("per_item")[i][layer][head];
              EXPECT_NEAR(value, expected.at("by_len").at(lengths[i]).at(want)[layer][head][t],
                          1e-9);
              sum += value;
            }
            EXPECT_NEAR(metric.at("mean")[layer][head], sum / 3, 1e-12);
          }
        }
      }
    }

    // One temperature: the metrics stand without a list.
    options.taus = {0.05};
    ASSERT_TRUE(RunScore(options).ok());
    EXPECT_EQ(
        ReadJson(folder_.Path("out.json")).at("scorers").at("positional_symbolic").at("positional"),
        taus[1].at("positional"));
  }
}

TEST_F(OfflineTest, ScoreWritesAccuracyOfTheLabels) {
  const Tensors expected(GoldenPath("expected/trained_letter/expected.safetensors"));
  const std::vector<int64_t> ids = expected.Integers("ids");
  const std::vector<int64_t> labels = expected.Integers("labels");
  std::string text;
  for (int64_t i = 0; i < 6; ++i) {
    // The last line has the wrong label.
    text += Line({ids.begin() + i * 17, ids.begin() + (i + 1) * 17},
                 absl::StrCat(",\"label\":", labels[i] + (i == 5 ? 1 : 0)));
  }
  folder_.Write("tokens.jsonl", text);
  engine::ScoreOptions options{.checkpoint = CheckpointPath("letter/step-06750"),
                               .tokens = folder_.Path("tokens.jsonl"),
                               .scorers = {"accuracy"},
                               .output = folder_.Path("out.json"),
                               .threads = 1};
  const absl::Status status = RunScore(options);
  ASSERT_TRUE(status.ok()) << status;
  const nlohmann::json report = ReadJson(folder_.Path("out.json"));
  const nlohmann::json& correct = report.at("scorers").at("accuracy").at("correct");
  EXPECT_EQ(correct.at("per_item").get<std::vector<double>>(),
            (std::vector<double>{1, 1, 1, 1, 1, 0}));
  EXPECT_NEAR(correct.at("mean"), 5.0 / 6, 1e-12);

  folder_.Write("tokens.jsonl", text + Line({1, 2, 3}));
  EXPECT_THAT(RunScore(options).message(), HasSubstr("tokens.jsonl:7: scorers accuracy"));
}

TEST_F(OfflineTest, ScoreLabelsHeadsAndNamesWhatItDid) {
  const Tensors expected(GoldenPath("expected/trained_number/expected.safetensors"));
  const nlohmann::json golden = ReadJson(GoldenPath("expected/trained_number/scores.json"));
  const std::vector<int64_t> ids = expected.Integers("ids");
  std::string text;
  for (size_t i = 0; i < ids.size(); i += 17) {
    text += Line({ids.begin() + i, ids.begin() + i + 17}, ",\"queries\":[5,16]");
  }
  folder_.Write("tokens.jsonl", text);
  engine::ScoreOptions options{.checkpoint = CheckpointPath("number/step-06750"),
                               .tokens = folder_.Path("tokens.jsonl"),
                               .scorers = {"positional_symbolic"},
                               .gammas = {0.05, 0.1, 0.2},
                               .output = folder_.Path("out.json"),
                               .threads = 2};
  ASSERT_TRUE(RunScore(options).ok()) << RunScore(options);
  nlohmann::json scores =
      ReadJson(folder_.Path("out.json")).at("scorers").at("positional_symbolic");
  ASSERT_EQ(scores.at("labels").size(), 3);
  for (const nlohmann::json& labels : scores.at("labels")) {
    const std::string gamma = absl::StrCat(labels.at("gamma").get<double>());
    EXPECT_EQ(labels.at("heads"), golden.at("purity_label").at(gamma)) << gamma;
  }
  EXPECT_EQ(scores.at("params"),
            nlohmann::json::parse(R"({"taus":0.0001,"queries":"last","mode":"tokens","eps":0.0})"));
  EXPECT_TRUE(scores.at("flags").empty());
  EXPECT_FALSE(scores.contains("mode_per_item"));

  options.params = {"positional_symbolic.queries=hops"};
  ASSERT_TRUE(RunScore(options).ok());
  scores = ReadJson(folder_.Path("out.json")).at("scorers").at("positional_symbolic");
  EXPECT_EQ(scores.at("axes"), nlohmann::json::parse(R"(["steps","layers","heads"])"));
  EXPECT_EQ(scores.at("positional").at("mean").size(), 2);
  EXPECT_EQ(scores.at("labels")[0].at("heads").size(), 2);
  EXPECT_EQ(scores.at("labels")[0].at("heads")[1].size(), 12);

  // Lines of which some are long.
  text.clear();
  for (const int64_t length : {17, 70}) text += Line({ids.begin(), ids.begin() + length});
  folder_.Write("tokens.jsonl", text);
  EXPECT_THAT(RunScore(options).message(),
              HasSubstr("tokens.jsonl:1: positional_symbolic.queries=hops needs \"queries\""));
  options.params.clear();
  ASSERT_TRUE(RunScore(options).ok());
  scores = ReadJson(folder_.Path("out.json")).at("scorers").at("positional_symbolic");
  EXPECT_EQ(scores.at("params").at("mode"), "auto");
  EXPECT_EQ(scores.at("mode_per_item"), nlohmann::json::parse(R"(["tokens","blocks"])"));
  options.params = {"positional_symbolic.queries=all"};
  ASSERT_TRUE(RunScore(options).ok());
  folder_.Write("tokens.jsonl", Line({ids.begin(), ids.begin() + 514}));
  EXPECT_THAT(RunScore(options).message(), HasSubstr("pairs of keys"));
  options.gammas = {0.6};
  EXPECT_THAT(RunScore(options).message(), HasSubstr("--gamma"));
}

TEST_F(OfflineTest, ScoreDoesNotLabelContentsThatHoldTheirPosition) {
  folder_.Write("tokens.jsonl", "{\"tokens\":[1,2,3,4]}\n");
  ASSERT_TRUE(RunScore({.checkpoint = GoldenPath("models/gpt2_tied"),
                        .tokens = folder_.Path("tokens.jsonl"),
                        .scorers = {"positional_symbolic"},
                        .output = folder_.Path("out.json"),
                        .threads = 1})
                  .ok());
  const nlohmann::json scores =
      ReadJson(folder_.Path("out.json")).at("scorers").at("positional_symbolic");
  EXPECT_EQ(scores.at("flags"), nlohmann::json::parse(R"(["position_in_content"])"));
  EXPECT_FALSE(scores.contains("labels"));
}

TEST_F(OfflineTest, ScoreLeavesOutWhatHasNoValue) {
  // A query with fewer than two earlier keys has no scores, but it has attention to itself.
  folder_.Write("tokens.jsonl", "{\"tokens\":[1,2]}\n{\"tokens\":[1,2,3]}\n");
  ASSERT_TRUE(RunScore({.checkpoint = GoldenPath("models/gptj_1head"),
                        .tokens = folder_.Path("tokens.jsonl"),
                        .scorers = {"positional_symbolic"},
                        .output = folder_.Path("out.json"),
                        .threads = 1})
                  .ok());
  const nlohmann::json scores =
      ReadJson(folder_.Path("out.json")).at("scorers").at("positional_symbolic");
  EXPECT_TRUE(scores.at("positional").at("per_item")[0][0][0].is_null());
  EXPECT_TRUE(scores.at("self_mass").at("per_item")[0][0][0].is_number());
  EXPECT_EQ(scores.at("positional").at("mean")[0][0],
            scores.at("positional").at("per_item")[1][0][0]);
}

TEST_F(OfflineTest, ScoreWritesExtremesAndWeightedIds) {
  WriteThree(Tensors(GoldenPath("expected/gptj_partial/expected.safetensors")));
  const nlohmann::json expected = ReadJson(GoldenPath("expected/gptj_partial/scores.json"));
  engine::ScoreOptions options{.checkpoint = GoldenPath("models/gptj_partial"),
                               .tokens = folder_.Path("tokens.jsonl"),
                               .scorers = {"frequency_use", "logit_gap", "retrieval_head"},
                               .dtype = "float64",
                               .output = folder_.Path("out.json"),
                               .threads = 1};
  const absl::Status status = RunScore(options);
  ASSERT_TRUE(status.ok()) << status;
  const nlohmann::json scorers = ReadJson(folder_.Path("out.json")).at("scorers");
  const nlohmann::json& logits = scorers.at("frequency_use").at("max_logit");
  EXPECT_EQ(scorers.at("frequency_use").at("axes"), nlohmann::json({"layers", "heads", "planes"}));
  EXPECT_EQ(logits.at("mean")[1][3].size(), 4);
  const nlohmann::json& gap = scorers.at("logit_gap").at("gap");
  for (size_t layer = 0; layer < 2; ++layer) {
    for (size_t head = 0; head < 4; ++head) {
      EXPECT_NEAR(logits.at("weighted_id")[layer][head], expected.at("weighted_id")[layer][head],
                  1e-8);
      double smallest = HUGE_VAL;
      for (const char* length : {"5", "17", "33"}) {
        const double one = expected.at("by_len").at(length).at("logit_gap")[layer][head];
        smallest = std::min(smallest, one);
      }
      EXPECT_NEAR(gap.at("min")[layer][head], smallest, 1e-9);
      EXPECT_TRUE(scorers.at("logit_gap").at("target_gap").at("min")[layer][head].is_null());
      EXPECT_TRUE(
          scorers.at("retrieval_head").at("retrieval_score").at("mean")[layer][head].is_null())
          << "no needle";
    }
  }

  options.checkpoint = GoldenPath("models/bloom_h4");
  EXPECT_EQ(common::ErrorReason(RunScore(options)), "POSITIONS_NOT_ROTARY");
}

TEST_F(OfflineTest, ScoreRefusesBadOptions) {
  folder_.Write("tokens.jsonl", "{\"tokens\":[1,2]}\n");
  const engine::ScoreOptions good{.checkpoint = GoldenPath("models/gptj_1head"),
                                  .tokens = folder_.Path("tokens.jsonl"),
                                  .scorers = {"positional_symbolic"},
                                  .output = folder_.Path("out.json")};
  engine::ScoreOptions bad = good;
  bad.scorers = {"magic"};
  EXPECT_THAT(RunScore(bad).message(), HasSubstr("--scorers"));
  bad = good;
  bad.threads = -1;
  EXPECT_THAT(RunScore(bad).message(), HasSubstr("--threads"));
  bad = good;
  bad.dtype = "float8";
  EXPECT_THAT(RunScore(bad).message(), HasSubstr("--dtype"));
  bad = good;
  bad.checkpoint = GoldenPath("models/gpt2_tied");
  std::string many = "{\"tokens\":[1";
  for (int i = 0; i < 2000; ++i) many += ",1";
  folder_.Write("tokens.jsonl", many + "]}\n");
  EXPECT_THAT(RunScore(bad).message(), HasSubstr("tokens.jsonl:1: sequences of 2001 tokens"));
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("out.json")));
}

}  // namespace
}  // namespace hopscope::golden

#include "worker/engine/offline/construct.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/checkpoint/testing/write_checkpoint.h"
#include "common/spec/catalog.h"
#include "common/status.h"
#include "nlohmann/json.hpp"
#include "worker/engine/tasks/registry.h"
#include "worker/engine/testing/engine_fixture.h"

namespace hopscope::engine {
namespace {

using checkpoint::testing::ReadFile;
using checkpoint::testing::TempFolder;
using ::testing::HasSubstr;

// 1,500 sequences of a task on a construction that is a checkpoint like any other.
v1::UnitResult Solve(const ConstructOptions& options, const std::string& task, int hops,
                     v1::Dtype dtype) {
  const TempFolder folder;
  ConstructOptions written = options;
  written.output = folder.Path("constructed");
  EXPECT_EQ(RunConstruct(written), absl::OkStatus());
  const auto root = testing::OpenRoot(folder.path());
  const auto digest = root->Digest("constructed");
  EXPECT_TRUE(digest.ok()) << digest.status();
  v1::WorkUnit unit =
      testing::MakeUnit(*testing::OpenRoot(testing::ShippedCheckpoints()), task, hops, 0, 1500);
  unit.mutable_checkpoint()->set_name("constructed");
  unit.mutable_checkpoint()->set_digest(*digest);
  unit.set_dtype(dtype);
  const CancelFlag cancel;
  const auto result = testing::MakeEngine(root.get(), 1)->Run(unit, cancel, nullptr);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.value_or(v1::UnitResult());
}

TEST(ConstructTest, IndexSolvesTheNumberTask) {
  for (const double beta : {1600.0, 3200.0}) {
    EXPECT_EQ(
        Solve({.construction = "index", .beta = beta}, "number", 4, v1::DTYPE_FLOAT64).correct(),
        1500)
        << beta;
  }
  EXPECT_LT(Solve({.construction = "index", .beta = 100}, "number", 4, v1::DTYPE_FLOAT64).correct(),
            750);
  for (int hops = 1; hops < 4; ++hops) {
    EXPECT_EQ(Solve({.construction = "index", .layers = hops}, "number", hops, v1::DTYPE_FLOAT64)
                  .correct(),
              1500)
        << hops;
  }
}

TEST(ConstructTest, RetrievalSolvesTheLetterTask) {
  for (const double beta : {20.0, 100.0, 800.0}) {
    EXPECT_EQ(Solve({.construction = "retrieval", .beta = beta}, "letter", 4, v1::DTYPE_FLOAT64)
                  .correct(),
              1500)
        << beta;
  }
  for (int hops = 1; hops < 4; ++hops) {
    EXPECT_EQ(Solve({.construction = "retrieval"}, "letter", hops, v1::DTYPE_FLOAT64).correct(),
              1500)
        << hops;
  }
}

TEST(ConstructTest, IsCalledPositionalOrSymbolicByTheScores) {
  const auto mean = [](const v1::UnitResult& result, const std::string& metric) {
    for (const v1::ScoreMoments& score : result.scores()) {
      if (score.metric() == metric) return score.mean(0);
    }
    return -1.0;
  };
  const auto index = Solve({.construction = "index", .layers = 1}, "number", 1, v1::DTYPE_FLOAT64);
  EXPECT_GT(mean(index, "positional"), 0.99);
  const auto retrieval =
      Solve({.construction = "retrieval", .layers = 1}, "letter", 1, v1::DTYPE_FLOAT64);
  EXPECT_GT(mean(retrieval, "symbolic"), 0.99);
  EXPECT_LT(mean(retrieval, "positional"), 0.5);
}

TEST(ConstructTest, ComputesInFloat32AsWell) {
  std::printf(
      "float32: index %ld of 1500 at beta 1600, %ld at 3200; retrieval %ld\n",
      static_cast<long>(
          Solve({.construction = "index", .beta = 1600}, "number", 4, v1::DTYPE_FLOAT32).correct()),
      static_cast<long>(Solve({.construction = "index"}, "number", 4, v1::DTYPE_FLOAT32).correct()),
      static_cast<long>(
          Solve({.construction = "retrieval"}, "letter", 4, v1::DTYPE_FLOAT32).correct()));
  EXPECT_EQ(Solve({.construction = "index"}, "number", 4, v1::DTYPE_FLOAT32).correct(), 1500);
  EXPECT_EQ(Solve({.construction = "retrieval"}, "letter", 4, v1::DTYPE_FLOAT32).correct(), 1500);
}

TEST(ConstructTest, VocabulariesAreTheTasks) {
  for (const auto& [construction, task] :
       {std::pair{"index", "number"}, std::pair{"retrieval", "letter"}}) {
    const TempFolder folder;
    const std::string output = folder.Path("constructed");
    ASSERT_TRUE(RunConstruct({.construction = construction, .output = output}).ok());
    const auto opened = checkpoint::Checkpoint::Open(output);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(opened->architecture().vocab_size,
              FindTask(task)->vocab_size(spec::FindTask(task)->default_window()));
    EXPECT_EQ(opened->architecture().family, "hopscope");
  }
}

TEST(ConstructTest, OptionsThatAreWrongAreNamed) {
  const TempFolder folder;
  folder.Write("full/file", "");
  const auto refusal = [&](ConstructOptions options) {
    if (options.output.empty()) options.output = folder.Path("new");
    return std::string(RunConstruct(options).message());
  };
  EXPECT_THAT(refusal({.construction = "lookup"}), HasSubstr("--construction"));
  EXPECT_THAT(refusal({.construction = "index", .layers = 0}), HasSubstr("--layers"));
  EXPECT_THAT(refusal({.construction = "index", .theta = std::nan("")}), HasSubstr("--theta"));
  EXPECT_THAT(refusal({.construction = "retrieval", .theta = -0.1}), HasSubstr("--theta"));
  EXPECT_THAT(refusal({.construction = "index", .beta = -1}), HasSubstr("--beta"));
  EXPECT_THAT(refusal({.construction = "index", .letters = 1}), HasSubstr("--letters"));
  EXPECT_THAT(refusal({.construction = "retrieval", .letters = 60}), HasSubstr("at most 1024"));
  EXPECT_THAT(refusal({.construction = "index", .integers = 0}), HasSubstr("--integers"));
  EXPECT_THAT(refusal({.construction = "index", .output = folder.Path("full")}),
              HasSubstr("new or empty"));
}

nlohmann::json Theory(TheoryOptions options) {
  const TempFolder folder;
  options.output = folder.Path("theory.json");
  EXPECT_EQ(RunTheory(options), absl::OkStatus());
  return nlohmann::json::parse(ReadFile(options.output));
}

TEST(TheoryTest, ReportsTheGapsOfEachLength) {
  const auto index = Theory({.construction = "index", .lengths = {8, 64}, .per_offset = true});
  EXPECT_EQ(index.at("theta"), 0.8);
  ASSERT_EQ(index.at("lengths").size(), 2U);
  EXPECT_NEAR(index["lengths"][0]["worst_gap"].get<double>(), 0.2244, 5e-5);
  EXPECT_EQ(index["lengths"][1]["gap_per_offset"].size(), 64U);
  EXPECT_EQ(index["lengths"][1]["bound_per_offset"].size(), 64U);
  const auto retrieval = Theory({.construction = "retrieval", .lengths = {17}});
  EXPECT_EQ(retrieval.at("letters"), 8);
  EXPECT_NEAR(retrieval.at("reach").get<double>(), 146.44, 0.01);
  EXPECT_NEAR(retrieval["lengths"][0]["worst_gap"].get<double>(), 0.2622, 5e-5);
  EXPECT_TRUE(Theory({.construction = "retrieval", .theta = 0, .lengths = {9}})["reach"].is_null());
}

TEST(TheoryTest, OptionsThatAreWrongAreNamed) {
  const auto refusal = [](const TheoryOptions& options) {
    return std::string(RunTheory(options).message());
  };
  EXPECT_THAT(refusal({.construction = "index"}), HasSubstr("--lengths"));
  EXPECT_THAT(refusal({.construction = "index", .lengths = {1}}), HasSubstr("--lengths"));
  EXPECT_THAT(refusal({.construction = "index", .letters = 8, .lengths = {9}}),
              HasSubstr("--letters"));
  EXPECT_THAT(refusal({.construction = "retrieval", .lengths = {9}, .per_offset = true}),
              HasSubstr("--per_offset"));
}

}  // namespace
}  // namespace hopscope::engine

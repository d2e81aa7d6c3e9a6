#include "worker/engine/torch_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "common/spec/catalog.h"
#include "common/status.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "worker/engine/sequence_source.h"
#include "worker/engine/testing/engine_fixture.h"

namespace hopscope::engine {
namespace {

using checkpoint::ModelRoot;
using ::testing::AllOf;
using testing::CopiedRoot;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using testing::MakeEngine;
using testing::MakeUnit;
using testing::OpenRoot;
using testing::ShippedCheckpoints;
using ::testing::StartsWith;

// Equal results give equal bytes: maps are written in the order of their keys.
std::string Bytes(const v1::UnitResult& result) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  result.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

class TorchEngineTest : public ::testing::Test {
 protected:
  v1::WorkUnit Unit(const std::string& task, int hops, int added_tokens, int64_t items) {
    return MakeUnit(*root_, task, hops, added_tokens, items);
  }

  const std::unique_ptr<ModelRoot> root_ = OpenRoot(ShippedCheckpoints());
  CancelFlag cancel_;
};

TEST_F(TorchEngineTest, DescribesItself) {
  v1::WorkerDescription description;
  MakeEngine(root_.get(), 3)->Describe(&description);
  EXPECT_EQ(description.device(), "cpu");
  EXPECT_NE(description.device_name(), "");
  EXPECT_GT(description.memory_bytes(), 0);
  EXPECT_EQ(description.threads(), 3);
  EXPECT_GE(description.capacity(), 1);
  EXPECT_THAT(description.kind(), AllOf(StartsWith("cpu-"), HasSubstr("/torch-2.")));
  EXPECT_THAT(description.dtypes(), ElementsAre(v1::DTYPE_FLOAT32, v1::DTYPE_FLOAT64,
                                                v1::DTYPE_BFLOAT16, v1::DTYPE_FLOAT16));
  EXPECT_THAT(description.model_families(), ::testing::Contains("gptj"));
  EXPECT_EQ(description.tasks_size(), static_cast<int>(spec::Tasks().size()));
  EXPECT_EQ(description.scorers_size(), static_cast<int>(spec::Scorers().size()));
}

TEST_F(TorchEngineTest, ScoresEveryHopOfThePath) {
  const auto engine = MakeEngine(root_.get(), 2);
  v1::WorkUnit unit = Unit("number", 3, 0, 20);
  auto& params = *unit.mutable_scorers(1)->mutable_params()->mutable_fields();
  const auto last = engine->Run(unit, cancel_, nullptr);
  params["queries"].set_string_value("hops");
  const auto hops = engine->Run(unit, cancel_, nullptr);
  ASSERT_TRUE(last.ok()) << last.status();
  ASSERT_TRUE(hops.ok()) << hops.status();
  ASSERT_EQ(hops->scores_size(), last->scores_size());
  for (int i = 0; i < hops->scores_size(); ++i) {
    EXPECT_EQ(last->scores(i).steps(), 0);
    EXPECT_EQ(hops->scores(i).steps(), 3);
    ASSERT_EQ(hops->scores(i).mean_size(), 3 * 12);
    EXPECT_THAT(hops->scores(i).count(), Each(20));
    EXPECT_THAT(hops->scores(i).flags(), ::testing::IsEmpty());
    // The first step is the last token. Its layers are computed for all tokens now.
    for (int layer = 0; layer < 12; ++layer) {
      EXPECT_NEAR(hops->scores(i).mean(layer), last->scores(i).mean(layer), 1e-3);
    }
  }
  // Layer 1 of this model is positional at every slot that reads.
  for (const int step : {0, 1, 2}) EXPECT_GT(hops->scores(0).mean(12 * step + 1), 0.9);
}

TEST_F(TorchEngineTest, ComputesAUnit) {
  const auto engine = MakeEngine(root_.get(), 2);
  RunStatistics statistics;
  const v1::WorkUnit unit = Unit("number", 3, 0, 100);
  const auto result = engine->Run(unit, cancel_, &statistics);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->items(), 100);
  EXPECT_EQ(result->items_failed(), 0);
  EXPECT_EQ(result->correct(), 100);
  EXPECT_THAT(result->kind(), ::testing::EndsWith("/float32"));
  // Three metrics at two temperatures.
  ASSERT_EQ(result->scores_size(), 6);
  for (const v1::ScoreMoments& score : result->scores()) {
    EXPECT_EQ(score.scorer(), "positional_symbolic");
    EXPECT_EQ(score.layers(), 12);
    EXPECT_EQ(score.heads(), 1);
    EXPECT_THAT(score.count(), Each(100));
    ASSERT_EQ(score.mean_size(), 12);
    EXPECT_THAT(score.mean(), Each(AllOf(Ge(0), Le(1))));
    EXPECT_THAT(score.m2(), Each(Ge(0)));
  }
  EXPECT_EQ(result->scores(0).metric(), "positional");
  EXPECT_EQ(result->scores(0).params().fields().at("taus").number_value(), 1e-4);
  EXPECT_EQ(result->scores(1).params().fields().at("taus").number_value(), 0.05);
  EXPECT_EQ(result->scores(2).metric(), "symbolic");
  // What this checkpoint is known for: layer 1 positional, layer 6 symbolic.
  EXPECT_GT(result->scores(0).mean(1), 0.9);
  EXPECT_LT(result->scores(2).mean(1), 0.1);
  EXPECT_LT(result->scores(0).mean(6), 0.1);
  EXPECT_GT(result->scores(2).mean(6), 0.9);

  EXPECT_EQ(statistics.sequences, 100);
  EXPECT_EQ(statistics.tokens, 1700);
  EXPECT_GT(statistics.model_load_seconds, 0);
  EXPECT_GT(statistics.forward_seconds, 0);
  ASSERT_EQ(statistics.score_seconds.size(), 2);
  EXPECT_EQ(statistics.score_seconds[1].first, "positional_symbolic");
  EXPECT_GT(statistics.score_seconds[1].second, 0);
  EXPECT_THAT(engine->LoadedDigests(), ElementsAre(unit.checkpoint().digest()));
  EXPECT_NEAR(static_cast<double>(engine->LoadedBytes()), 4 * 2405513, 1e4);
  EXPECT_TRUE(engine->Healthy());

  RunStatistics again;
  ASSERT_TRUE(engine->Run(unit, cancel_, &again).ok());
  EXPECT_EQ(again.model_load_seconds, 0);
}

TEST_F(TorchEngineTest, AccuracyIsCountedWithoutBeingAskedFor) {
  v1::WorkUnit unit = Unit("letter", 2, 0, 20);
  unit.clear_scorers();
  const auto result = MakeEngine(root_.get(), 1)->Run(unit, cancel_, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->items(), 20);
  EXPECT_EQ(result->correct(), 20);
  EXPECT_EQ(result->scores_size(), 0);
}

TEST_F(TorchEngineTest, ResultsAreBitIdenticalForAnyThreadCountAndWhateverElseRuns) {
  for (const int added_tokens : {0, 50, 300}) {
    v1::WorkUnit unit = Unit("number", 4, added_tokens, added_tokens == 300 ? 5 : 70);
    unit.set_first_item(1000);
    const auto expected = MakeEngine(root_.get(), 1)->Run(unit, cancel_, nullptr);
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (const int threads : {1, 2, 3}) {
      const auto engine = MakeEngine(root_.get(), threads);
      // Another model and other lengths at the same time, on the same threads.
      CancelFlag other_cancel;
      std::thread other([&] {
        for (const int length : {100, 0, 20}) {
          EXPECT_TRUE(engine->Run(Unit("letter", 2, length, 17), other_cancel, nullptr).ok());
        }
      });
      for (int repeat = 0; repeat < 2; ++repeat) {
        const auto result = engine->Run(unit, cancel_, nullptr);
        ASSERT_TRUE(result.ok()) << result.status();
        EXPECT_TRUE(Bytes(*result) == Bytes(*expected))
            << threads << " threads, " << added_tokens << " added tokens";
      }
      other.join();
    }
  }
}

TEST_F(TorchEngineTest, ComputesOnItsOwnThreadsAlone) {
  const auto count_threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const auto before = count_threads();
  const auto engine = MakeEngine(root_.get(), 2);
  ASSERT_TRUE(engine->Run(Unit("number", 1, 850, 4), cancel_, nullptr).ok());
  EXPECT_EQ(count_threads(), before + 2);
}

TEST_F(TorchEngineTest, CancellingEndsARunWithinASecond) {
  // Processor time of all threads: what else the machine does is not the engine's doing.
  const auto processor_seconds = [] {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  const auto engine = MakeEngine(root_.get(), 2);
  // Hours of work.
  const v1::WorkUnit unit = Unit("number", 1, 5000, 100'000);
  double cancelled = 0;
  std::thread canceller([&] {
    // The model is loaded right before the first forward pass.
    while (engine->LoadedBytes() == 0) std::this_thread::yield();
    cancelled = processor_seconds();
    cancel_.Cancel();
  });
  const absl::Status status = engine->Run(unit, cancel_, nullptr).status();
  canceller.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_LT(processor_seconds() - cancelled, 1);
}

TEST_F(TorchEngineTest, CancelledUnitsDoNotStart) {
  cancel_.Cancel();
  EXPECT_EQ(
      MakeEngine(root_.get(), 1)->Run(Unit("number", 1, 0, 1), cancel_, nullptr).status().code(),
      absl::StatusCode::kCancelled);
}

TEST_F(TorchEngineTest, AChangedCheckpointIsRefused) {
  CopiedRoot copy;
  const v1::WorkUnit unit = MakeUnit(copy.root(), "number", 1, 0, 4);
  copy.SetEmbedding("number/step-06750", 3, 0.5f);
  const absl::Status status = MakeEngine(&copy.root(), 1)->Run(unit, cancel_, nullptr).status();
  EXPECT_EQ(common::ErrorReason(status), "CHECKPOINT");
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("number/step-06750"), HasSubstr(unit.checkpoint().digest())));
}

TEST_F(TorchEngineTest, AMissingOrBrokenCheckpointIsTheCheckpointsFault) {
  CopiedRoot copy;
  v1::WorkUnit unit = MakeUnit(copy.root(), "number", 1, 0, 4);
  const auto engine = MakeEngine(&copy.root(), 1);
  unit.mutable_checkpoint()->set_name("number/step-99999");
  EXPECT_EQ(common::ErrorReason(engine->Run(unit, cancel_, nullptr).status()), "CHECKPOINT");

  copy.folder().Write("number/step-06750/config.json", "{");
  unit = MakeUnit(copy.root(), "number", 1, 0, 4);
  EXPECT_EQ(common::ErrorReason(engine->Run(unit, cancel_, nullptr).status()), "CHECKPOINT");
  EXPECT_THAT(engine->LoadedDigests(), ::testing::IsEmpty());
}

TEST_F(TorchEngineTest, AVocabularyThatIsTooSmallIsNamedWithBothSizes) {
  v1::WorkUnit unit = Unit("number", 1, 0, 4);
  *unit.mutable_checkpoint() = Unit("letter", 1, 0, 1).checkpoint();
  const absl::Status status = MakeEngine(root_.get(), 1)->Run(unit, cancel_, nullptr).status();
  EXPECT_EQ(common::ErrorReason(status), "CHECKPOINT");
  EXPECT_THAT(status.message(), AllOf(HasSubstr("129"), HasSubstr("137")));
}

TEST_F(TorchEngineTest, WhatItDoesNotKnowIsAnInternalError) {
  const auto engine = MakeEngine(root_.get(), 1);
  v1::WorkUnit unit = Unit("number", 1, 0, 4);
  unit.add_scorers()->set_name("astrology");
  EXPECT_EQ(common::ErrorReason(engine->Run(unit, cancel_, nullptr).status()), "INTERNAL");
  unit = Unit("number", 1, 0, 4);
  unit.mutable_sequences()->set_task("riddle");
  EXPECT_EQ(common::ErrorReason(engine->Run(unit, cancel_, nullptr).status()), "INTERNAL");
}

TEST_F(TorchEngineTest, SixteenBitsAreAKindOfTheirOwnAndSolveTheTask) {
  const auto engine = MakeEngine(root_.get(), 2);
  for (const auto& [dtype, name] :
       {std::pair{v1::DTYPE_BFLOAT16, "/bfloat16"}, std::pair{v1::DTYPE_FLOAT16, "/float16"}}) {
    v1::WorkUnit unit = Unit("number", 2, 0, 200);
    unit.set_dtype(dtype);
    const auto result = engine->Run(unit, cancel_, nullptr);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_THAT(result->kind(), ::testing::EndsWith(name));
    EXPECT_EQ(result->items(), 200);
    EXPECT_GE(result->correct(), 190);
  }
}

TEST_F(TorchEngineTest, KeepsAsManyModelsAsFit) {
  const v1::WorkUnit number = Unit("number", 1, 0, 2);
  const v1::WorkUnit letter = Unit("letter", 1, 0, 2);
  v1::WorkUnit number64 = number;
  number64.set_dtype(v1::DTYPE_FLOAT64);
  const auto roomy = MakeEngine(root_.get(), 1);
  for (const auto& unit : {number, letter, number}) {
    ASSERT_TRUE(roomy->Run(unit, cancel_, nullptr).ok());
  }
  EXPECT_THAT(roomy->LoadedDigests(),
              ElementsAre(number.checkpoint().digest(), letter.checkpoint().digest()));
  const int64_t two = roomy->LoadedBytes();
  ASSERT_TRUE(roomy->Run(number64, cancel_, nullptr).ok());
  EXPECT_THAT(roomy->LoadedDigests(),
              ElementsAre(number.checkpoint().digest(), letter.checkpoint().digest()));
  EXPECT_GT(roomy->LoadedBytes(), two);

  const auto narrow = MakeEngine(root_.get(), 1, /*cache_bytes=*/15'000'000);
  for (const auto& unit : {number, letter}) {
    ASSERT_TRUE(narrow->Run(unit, cancel_, nullptr).ok());
  }
  EXPECT_THAT(narrow->LoadedDigests(), ElementsAre(letter.checkpoint().digest()));
  EXPECT_LE(narrow->LoadedBytes(), 15'000'000);
}

TEST_F(TorchEngineTest, Float64AndFloat32AgreeClosely) {
  v1::WorkUnit unit = Unit("letter", 3, 20, 40);
  const auto engine = MakeEngine(root_.get(), 2);
  const auto narrow = engine->Run(unit, cancel_, nullptr);
  unit.set_dtype(v1::DTYPE_FLOAT64);
  const auto wide = engine->Run(unit, cancel_, nullptr);
  ASSERT_TRUE(narrow.ok() && wide.ok());
  EXPECT_NE(narrow->kind(), wide->kind());
  EXPECT_EQ(narrow->correct(), wide->correct());
  for (int s = 0; s < wide->scores_size(); ++s) {
    for (int cell = 0; cell < 12; ++cell) {
      EXPECT_NEAR(narrow->scores(s).mean(cell), wide->scores(s).mean(cell), 1e-4);
    }
  }
}

TEST_F(TorchEngineTest, OptionsAreChecked) {
  const auto create = [&](const std::string& device, int threads, int64_t bytes) {
    return TorchEngine::Create({.model_root = root_.get(),
                                .device = device,
                                .threads = threads,
                                .cache_bytes = bytes})
        .status();
  };
  EXPECT_THAT(create("tpu", 1, 0).message(), HasSubstr("auto, cpu, cuda or cuda:N"));
  EXPECT_THAT(create("cuda:-1", 1, 0).message(), HasSubstr("cuda:-1"));
  EXPECT_THAT(create("cpu", -1, 0).message(), HasSubstr("threads"));
  EXPECT_THAT(create("cpu", 1, -1).message(), HasSubstr("cache_bytes"));
  // No machine has so many.
  EXPECT_EQ(common::ErrorReason(create("cuda:100000", 1, 0)), "CUDA_UNAVAILABLE");
  EXPECT_TRUE(create("auto", 1, 0).ok());
}

// Hands out lines that are there.
class LinesReader : public TokensReader {
 public:
  absl::StatusOr<Lines> Read(const std::string& digest, int64_t first_item, int64_t item_count,
                             const CancelFlag&) override {
    if (digest != "sha256:1") return absl::NotFoundError("no such sequences");
    return std::make_shared<const std::vector<tokens::TokensLine>>(
        lines.begin() + first_item, lines.begin() + first_item + item_count);
  }

  std::vector<tokens::TokensLine> lines;
};

TEST_F(TorchEngineTest, UploadedSequencesGiveWhatTheSameSequencesOfATaskGive) {
  v1::WorkUnit unit = Unit("letter", 2, 0, 40);
  const auto engine = MakeEngine(root_.get(), 2);
  const auto made = engine->Run(unit, cancel_, nullptr);
  ASSERT_TRUE(made.ok()) << made.status();

  LinesReader reader;
  const auto source = TaskSource::Create(unit.sequences(), 0, 40);
  for (int64_t item = 0; item < 40; ++item) {
    const Sequence sequence = source->Make({&item, 1})->front();
    tokens::TokensLine& line = reader.lines.emplace_back();
    line.tokens = sequence.tokens;
    line.label = sequence.label;
  }
  unit.mutable_sequences()->Clear();
  unit.mutable_sequences()->set_task("tokens");
  unit.mutable_sequences()->set_tokens_digest("sha256:1");
  EXPECT_FALSE(engine->Run(unit, cancel_, nullptr).ok()) << "nobody reads sequences";
  engine->set_tokens_reader(&reader);
  const auto uploaded = engine->Run(unit, cancel_, nullptr);
  ASSERT_TRUE(uploaded.ok()) << uploaded.status();
  EXPECT_EQ(Bytes(*uploaded), Bytes(*made));

  // Of several lengths, some without a label.
  reader.lines[3].label.reset();
  reader.lines[5].label.reset();
  reader.lines[5].tokens.resize(7);
  const auto mixed = engine->Run(unit, cancel_, nullptr);
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  EXPECT_EQ(mixed->items(), 40);
  EXPECT_EQ(mixed->items_unlabelled(), 2);
  EXPECT_EQ(mixed->correct(), 38);

  reader.lines[0].tokens[0] = 129;
  const absl::Status large = engine->Run(unit, cancel_, nullptr).status();
  EXPECT_EQ(common::ErrorReason(large), "CHECKPOINT");
  EXPECT_THAT(large.message(), HasSubstr("needs 130"));
  unit.mutable_sequences()->set_tokens_digest("sha256:2");
  EXPECT_EQ(common::ErrorReason(engine->Run(unit, cancel_, nullptr).status()), "INTERNAL");
}

TEST_F(TorchEngineTest, CountsAnswersBySlot) {
  v1::WorkUnit unit = Unit("letter", 1, 0, 64);
  unit.clear_scorers();
  unit.add_scorers()->set_name("accuracy_by_position");
  const auto result = MakeEngine(root_.get(), 2)->Run(unit, cancel_, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->scores_size(), 1);
  EXPECT_EQ(result->scores(0).steps(), 8);
  EXPECT_EQ(result->scores(0).layers(), 0);
  int64_t items = 0;
  for (const int64_t count : result->scores(0).count()) items += count;
  EXPECT_EQ(items, 64);
  EXPECT_THAT(result->scores(0).mean(), Each(1));
}

}  // namespace
}  // namespace hopscope::engine

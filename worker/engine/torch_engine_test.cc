#include "worker/engine/torch_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/checkpoint/checkpoint.h"
#include "common/spec/catalog.h"
#include "common/status.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "worker/engine/tasks/registry.h"

namespace hopscope::engine {
namespace {

using checkpoint::ModelRoot;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::StartsWith;

std::string ShippedCheckpoints() { return HOPSCOPE_SOURCE_DIR "/checkpoints"; }

std::unique_ptr<TorchEngine> MakeEngine(const ModelRoot* root, int threads,
                                        int64_t cache_bytes = 0) {
  auto engine = TorchEngine::Create(
      {.model_root = root, .device = "cpu", .threads = threads, .cache_bytes = cache_bytes});
  EXPECT_TRUE(engine.ok()) << engine.status();
  return *std::move(engine);
}

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

class TorchEngineTest : public testing::Test {
 protected:
  TorchEngineTest() {
    auto root = ModelRoot::Open(ShippedCheckpoints());
    EXPECT_TRUE(root.ok()) << root.status();
    root_ = *std::move(root);
  }

  v1::WorkUnit Unit(const std::string& task, int hops, int added_tokens, int64_t items,
                    const ModelRoot* root = nullptr) {
    v1::WorkUnit unit;
    unit.set_job("jobs/test");
    unit.set_item_count(items);
    v1::SequenceSpec* sequences = unit.mutable_sequences();
    sequences->set_task(task);
    sequences->set_hops(hops);
    sequences->set_added_tokens(added_tokens);
    sequences->mutable_window()->set_target(8);
    sequences->mutable_window()->set_pre_target(8);
    sequences->set_padding("random");
    sequences->set_seed(42);
    sequences->set_split(v1::SPLIT_EVALUATION);
    unit.mutable_checkpoint()->set_name(task + "/step-06750");
    const auto digest = (root == nullptr ? root_.get() : root)->Digest(unit.checkpoint().name());
    EXPECT_TRUE(digest.ok()) << digest.status();
    unit.mutable_checkpoint()->set_digest(*digest);
    unit.set_dtype(v1::DTYPE_FLOAT32);
    v1::ScorerSpec* accuracy = unit.add_scorers();
    accuracy->set_name("accuracy");
    v1::ScorerSpec* scores = unit.add_scorers();
    scores->set_name("positional_symbolic");
    auto* taus = (*scores->mutable_params()->mutable_fields())["taus"].mutable_list_value();
    taus->add_values()->set_number_value(1e-4);
    taus->add_values()->set_number_value(0.05);
    return unit;
  }

  std::unique_ptr<ModelRoot> root_;
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
  EXPECT_THAT(description.dtypes(), ElementsAre(v1::DTYPE_FLOAT32, v1::DTYPE_FLOAT64));
  EXPECT_THAT(description.model_families(), testing::Contains("gptj"));
  EXPECT_EQ(description.tasks_size(), static_cast<int>(spec::Tasks().size()));
  EXPECT_EQ(description.scorers_size(), static_cast<int>(spec::Scorers().size()));
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
  EXPECT_THAT(result->kind(), testing::EndsWith("/float32"));
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
        for (const int length : {100, 0, 20, 7}) {
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
  const auto engine = MakeEngine(root_.get(), 2);
  // Hours of work.
  const v1::WorkUnit unit = Unit("number", 1, 5000, 100'000);
  std::chrono::steady_clock::time_point cancelled;
  std::thread canceller([&] {
    // The model is loaded right before the first forward pass.
    while (engine->LoadedBytes() == 0) std::this_thread::yield();
    cancelled = std::chrono::steady_clock::now();
    cancel_.Cancel();
  });
  const absl::Status status = engine->Run(unit, cancel_, nullptr).status();
  const auto ended = std::chrono::steady_clock::now();
  canceller.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_LT(ended - cancelled, std::chrono::seconds(1));
}

TEST_F(TorchEngineTest, CancelledUnitsDoNotStart) {
  cancel_.Cancel();
  EXPECT_EQ(
      MakeEngine(root_.get(), 1)->Run(Unit("number", 1, 0, 1), cancel_, nullptr).status().code(),
      absl::StatusCode::kCancelled);
}

// A model root in a temporary folder with copies of the shipped checkpoints.
class CopiedRoot {
 public:
  CopiedRoot() {
    std::string path = testing::TempDir() + "hopscope-root-XXXXXX";
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    path_ = path;
    std::filesystem::copy(ShippedCheckpoints(), path_, std::filesystem::copy_options::recursive);
    auto root = ModelRoot::Open(path_);
    EXPECT_TRUE(root.ok()) << root.status();
    root_ = *std::move(root);
  }
  ~CopiedRoot() { std::filesystem::remove_all(path_); }

  const ModelRoot* root() const { return root_.get(); }
  std::string Path(const std::string& relative) const { return path_ + "/" + relative; }

  // Replaces the row of a token in the embedding.
  void SetEmbedding(const std::string& name, int32_t token, float value) {
    size_t offset = 0;
    std::vector<float> row;
    {
      const auto checkpoint = checkpoint::Checkpoint::Open(Path(name));
      ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
      const auto& slice = checkpoint->Weight(checkpoint::WeightRole::kTokenEmbedding);
      std::ifstream file(Path(name) + "/model.safetensors", std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(file)),
                              std::istreambuf_iterator<char>());
      offset = bytes.find(std::string(slice.tensor.bytes.substr(0, 4096)));
      ASSERT_NE(offset, std::string::npos);
      row.assign(slice.columns, value);
      offset += token * slice.columns * sizeof(float);
    }
    std::fstream file(Path(name) + "/model.safetensors",
                      std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(reinterpret_cast<const char*>(row.data()),
               static_cast<std::streamsize>(row.size() * sizeof(float)));
  }

 private:
  std::string path_;
  std::unique_ptr<ModelRoot> root_;
};

TEST_F(TorchEngineTest, ItemsThatAreNotNumbersFailAloneAndNamedly) {
  constexpr int32_t kSpoilt = 20;  // a letter of the Number task
  constexpr int64_t kItems = 200;
  for (const float value : {NAN, INFINITY}) {
    CopiedRoot copy;
    copy.SetEmbedding("number/step-06750", kSpoilt, value);
    v1::WorkUnit unit = Unit("number", 2, 0, kItems, copy.root());
    unit.set_first_item(500);
    std::set<int64_t> spoilt;
    const auto sequences =
        FindTask("number")->MakeRange(unit.sequences(), unit.first_item(), kItems);
    ASSERT_TRUE(sequences.ok()) << sequences.status();
    for (int64_t i = 0; i < kItems; ++i) {
      const auto& tokens = (*sequences)[i].tokens;
      if (std::find(tokens.begin(), tokens.end(), kSpoilt) != tokens.end()) spoilt.insert(500 + i);
    }
    ASSERT_GT(spoilt.size(), 0);
    ASSERT_LT(spoilt.size(), kItems / 2);

    const auto result = MakeEngine(copy.root(), 2)->Run(unit, cancel_, nullptr);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->items_failed(), static_cast<int64_t>(spoilt.size()));
    EXPECT_EQ(result->items(), kItems - static_cast<int64_t>(spoilt.size()));
    EXPECT_EQ(result->correct(), result->items());
    ASSERT_GT(result->item_failures_size(), 0);
    EXPECT_EQ(result->item_failures(0).item(), *spoilt.begin());
    EXPECT_EQ(result->item_failures(0).failure().reason(), "NUMERIC");
    EXPECT_NE(result->item_failures(0).failure().message(), "");

    // The others have exactly the scores that they have without the spoilt row.
    v1::WorkUnit clean = Unit("number", 2, 0, kItems);
    clean.set_first_item(500);
    const auto whole = MakeEngine(root_.get(), 2)->Run(clean, cancel_, nullptr);
    ASSERT_TRUE(whole.ok()) << whole.status();
    for (int s = 0; s < result->scores_size(); ++s) {
      EXPECT_THAT(result->scores(s).count(), Each(result->items()));
      for (int cell = 0; cell < 12; ++cell) {
        EXPECT_TRUE(std::isfinite(result->scores(s).mean(cell)));
        EXPECT_NEAR(result->scores(s).mean(cell), whole->scores(s).mean(cell), 0.1);
      }
    }
  }
}

TEST_F(TorchEngineTest, AChangedCheckpointIsRefused) {
  CopiedRoot copy;
  const v1::WorkUnit unit = Unit("number", 1, 0, 4, copy.root());
  copy.SetEmbedding("number/step-06750", 3, 0.5f);
  const absl::Status status = MakeEngine(copy.root(), 1)->Run(unit, cancel_, nullptr).status();
  EXPECT_EQ(common::ErrorReason(status), "CHECKPOINT");
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("number/step-06750"), HasSubstr(unit.checkpoint().digest())));
}

TEST_F(TorchEngineTest, AMissingOrBrokenCheckpointIsTheCheckpointsFault) {
  CopiedRoot copy;
  v1::WorkUnit unit = Unit("number", 1, 0, 4, copy.root());
  const auto engine = MakeEngine(copy.root(), 1);
  unit.mutable_checkpoint()->set_name("number/step-99999");
  EXPECT_EQ(common::ErrorReason(engine->Run(unit, cancel_, nullptr).status()), "CHECKPOINT");

  std::ofstream(copy.Path("number/step-06750/config.json")) << "{";
  unit = Unit("number", 1, 0, 4, copy.root());
  EXPECT_EQ(common::ErrorReason(engine->Run(unit, cancel_, nullptr).status()), "CHECKPOINT");
  EXPECT_THAT(engine->LoadedDigests(), testing::IsEmpty());
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
  unit = Unit("number", 1, 0, 4);
  unit.set_dtype(v1::DTYPE_BFLOAT16);
  EXPECT_FALSE(engine->Run(unit, cancel_, nullptr).ok());
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

}  // namespace
}  // namespace hopscope::engine

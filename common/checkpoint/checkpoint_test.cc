#include "common/checkpoint/checkpoint.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/checkpoint/testing/write_checkpoint.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hopscope::checkpoint {
namespace {

using testing::ConfigOf;
using ::testing::ElementsAre;
using testing::GptJ;
using ::testing::HasSubstr;
using testing::ReadFile;
using testing::SafetensorsFile;
using testing::TempFolder;
using testing::Tensor;
using testing::TensorsOf;
using testing::WriteCheckpoint;

// A GPT-J checkpoint that a test may spoil before it opens it.
class BrokenCheckpointTest : public ::testing::Test {
 protected:
  BrokenCheckpointTest() { WriteCheckpoint(folder_, "m", GptJ()); }

  absl::Status Open() { return Checkpoint::Open(folder_.Path("m")).status(); }
  std::string Reason() {
    const absl::Status status = Open();
    EXPECT_THAT(std::string(status.message()), ::testing::Not(HasSubstr(folder_.path())));
    return status.ok() ? "" : common::ErrorReason(status);
  }
  void WriteTensors(const std::vector<Tensor>& tensors) {
    folder_.Write("m/model.safetensors", SafetensorsFile(tensors));
  }

  TempFolder folder_;
  std::vector<Tensor> tensors_ = TensorsOf(GptJ());
};

TEST(Checkpoint, OpensWhatATestWrote) {
  TempFolder folder;
  const GptJ model;
  WriteCheckpoint(folder, "m", model);
  const auto checkpoint = Checkpoint::Open(folder.Path("m"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const Architecture& arch = checkpoint->architecture();
  EXPECT_EQ(arch.family, "gptj");
  EXPECT_EQ(arch.layers, 2);
  EXPECT_EQ(arch.d_head, 8);
  EXPECT_THAT(checkpoint->files(),
              ElementsAre(folder.Path("m/config.json"), folder.Path("m/model.safetensors")));
  EXPECT_EQ(checkpoint->weight_bytes(),
            static_cast<int64_t>(std::filesystem::file_size(folder.Path("m/model.safetensors"))));

  const v1::ModelShape shape = checkpoint->shape();
  EXPECT_EQ(shape.layers(), 2);
  EXPECT_EQ(shape.heads(), 2);
  EXPECT_EQ(shape.kv_heads(), 2);
  EXPECT_EQ(shape.d_model(), 16);
  EXPECT_EQ(shape.d_head(), 8);
  EXPECT_EQ(shape.d_mlp(), 32);
  EXPECT_EQ(shape.vocab_size(), 11);
  EXPECT_EQ(shape.n_positions(), 64);
  EXPECT_FALSE(shape.learned_positions());
}

TEST(Checkpoint, HandsOutTheBytesThatWereWritten) {
  TempFolder folder;
  const GptJ model;
  WriteCheckpoint(folder, "m", model);
  auto opened = Checkpoint::Open(folder.Path("m"));
  ASSERT_TRUE(opened.ok()) << opened.status();
  const Checkpoint checkpoint = *std::move(opened);
  const struct {
    WeightRole role;
    int64_t layer;
    const char* name;
  } weights[] = {
      {WeightRole::kTokenEmbedding, -1, "transformer.wte.weight"},
      {WeightRole::kNorm1Gain, 1, "transformer.h.1.ln_1.weight"},
      {WeightRole::kNorm1Bias, 0, "transformer.h.0.ln_1.bias"},
      {WeightRole::kQuery, 0, "transformer.h.0.attn.q_proj.weight"},
      {WeightRole::kKey, 1, "transformer.h.1.attn.k_proj.weight"},
      {WeightRole::kValue, 1, "transformer.h.1.attn.v_proj.weight"},
      {WeightRole::kAttentionOut, 0, "transformer.h.0.attn.out_proj.weight"},
      {WeightRole::kMlpUp, 1, "transformer.h.1.mlp.fc_in.weight"},
      {WeightRole::kMlpUpBias, 1, "transformer.h.1.mlp.fc_in.bias"},
      {WeightRole::kMlpDown, 1, "transformer.h.1.mlp.fc_out.weight"},
      {WeightRole::kMlpDownBias, 1, "transformer.h.1.mlp.fc_out.bias"},
      {WeightRole::kFinalNormGain, -1, "transformer.ln_f.weight"},
      {WeightRole::kFinalNormBias, -1, "transformer.ln_f.bias"},
      {WeightRole::kHead, -1, "lm_head.weight"},
      {WeightRole::kHeadBias, -1, "lm_head.bias"},
  };
  for (const auto& weight : weights) {
    ASSERT_TRUE(checkpoint.Has(weight.role, weight.layer)) << weight.name;
    const WeightSlice& slice = checkpoint.Weight(weight.role, weight.layer);
    for (const Tensor& tensor : TensorsOf(model)) {
      if (tensor.name != weight.name) continue;
      EXPECT_EQ(slice.tensor.bytes, tensor.bytes) << weight.name;
      EXPECT_EQ(slice.tensor.shape, tensor.shape) << weight.name;
    }
  }
  for (const WeightRole role : {WeightRole::kPositionEmbedding, WeightRole::kNorm2Gain,
                                WeightRole::kQueryBias, WeightRole::kMlpGate}) {
    EXPECT_FALSE(checkpoint.Has(role, 0));
    EXPECT_FALSE(checkpoint.Has(role));
  }
  EXPECT_FALSE(checkpoint.Has(WeightRole::kQuery));
  EXPECT_FALSE(checkpoint.Has(WeightRole::kQuery, 2));
  EXPECT_FALSE(checkpoint.Has(WeightRole::kQuery, -2));
}

TEST(CheckpointDeathTest, AskingForAWeightThatIsNotThereIsABug) {
  TempFolder folder;
  WriteCheckpoint(folder, "m", GptJ());
  const auto checkpoint = Checkpoint::Open(folder.Path("m"));
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_DEATH(checkpoint->Weight(WeightRole::kMlpGate, 0), "no weight of role");
}

TEST_F(BrokenCheckpointTest, IsFineBeforeItIsBroken) { EXPECT_EQ(Reason(), ""); }

TEST_F(BrokenCheckpointTest, MissingFiles) {
  EXPECT_EQ(Checkpoint::Open(folder_.Path("none")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(common::ErrorReason(Checkpoint::Open(folder_.Path("m/config.json")).status()),
            "CHECKPOINT_NOT_FOUND");
  std::filesystem::remove(folder_.Path("m/model.safetensors"));
  EXPECT_EQ(Reason(), "CHECKPOINT_MISSING_WEIGHTS");
  EXPECT_EQ(Open().code(), absl::StatusCode::kNotFound);
  folder_.Write("m/pytorch_model.bin", "");
  EXPECT_THAT(std::string(Open().message()), HasSubstr("convert it to safetensors"));
  std::filesystem::remove(folder_.Path("m/config.json"));
  EXPECT_EQ(Reason(), "CHECKPOINT_MISSING_CONFIG");
  EXPECT_EQ(Open().code(), absl::StatusCode::kNotFound);
}

TEST_F(BrokenCheckpointTest, BadConfigs) {
  folder_.Write("m/config.json", "{");
  EXPECT_EQ(Reason(), "CHECKPOINT_CONFIG_NOT_JSON");
  folder_.Write("m/config.json", "[]");
  EXPECT_EQ(Reason(), "CHECKPOINT_CONFIG");
  folder_.Write("m/config.json", std::string((1 << 20) + 1, ' '));
  EXPECT_EQ(Reason(), "CHECKPOINT_CONFIG");
  folder_.Write("m/config.json", R"({"model_type":"resnet"})");
  EXPECT_EQ(Reason(), "CHECKPOINT_UNSUPPORTED_FAMILY");
  folder_.Write("m/config.json", "{}");
  EXPECT_EQ(Reason(), "CHECKPOINT_UNSUPPORTED_FAMILY");
}

TEST_F(BrokenCheckpointTest, ATruncatedDownload) {
  const std::string whole = ReadFile(folder_.Path("m/model.safetensors"));
  for (const size_t size : {size_t{0}, size_t{7}, size_t{8}, size_t{100}, whole.size() - 1}) {
    folder_.Write("m/model.safetensors", whole.substr(0, size));
    EXPECT_EQ(Reason(), "CHECKPOINT_TRUNCATED") << size;
    EXPECT_THAT(std::string(Open().message()), HasSubstr("model.safetensors"));
  }
  folder_.Write("m/model.safetensors", whole + "x");
  EXPECT_EQ(Reason(), "CHECKPOINT_TRAILING_BYTES");
}

TEST_F(BrokenCheckpointTest, AMissingTensor) {
  for (const Tensor& missing : tensors_) {
    std::vector<Tensor> others;
    for (const Tensor& tensor : tensors_) {
      if (tensor.name != missing.name) others.push_back(tensor);
    }
    WriteTensors(others);
    EXPECT_EQ(Reason(), "CHECKPOINT_MISSING_TENSOR") << missing.name;
    EXPECT_THAT(std::string(Open().message()), HasSubstr(missing.name));
  }
}

TEST_F(BrokenCheckpointTest, AWrongShape) {
  for (Tensor& tensor : tensors_) {
    const Tensor before = tensor;
    tensor.shape.push_back(1);
    WriteTensors(tensors_);
    EXPECT_EQ(Reason(), "CHECKPOINT_SHAPE") << tensor.name;
    EXPECT_THAT(std::string(Open().message()), HasSubstr(tensor.name));
    tensor = before;
  }
  // The weights of a model with one token more.
  WriteTensors(TensorsOf(GptJ{.vocab_size = 12}));
  EXPECT_EQ(Reason(), "CHECKPOINT_SHAPE");
  EXPECT_THAT(std::string(Open().message()),
              HasSubstr("[12, 16], but config.json asks for [11, 16]"));
}

TEST_F(BrokenCheckpointTest, ATypeThatCannotBeEvaluated) {
  tensors_[3].dtype = "I32";
  WriteTensors(tensors_);
  EXPECT_EQ(Reason(), "CHECKPOINT_DTYPE");
  EXPECT_THAT(std::string(Open().message()), HasSubstr("I32"));
}

TEST_F(BrokenCheckpointTest, ATensorThatWouldChangeTheModel) {
  std::vector<Tensor> tensors = tensors_;
  tensors.push_back({"transformer.h.0.attn.q_norm.weight", "F32", {8}, std::string(32, '\0')});
  WriteTensors(tensors);
  EXPECT_EQ(Reason(), "CHECKPOINT_UNEXPECTED_TENSOR");
  WriteTensors(TensorsOf(GptJ{.layers = 3}));
  EXPECT_EQ(Reason(), "CHECKPOINT_UNEXPECTED_TENSOR");
}

TEST_F(BrokenCheckpointTest, BuffersAreSkippedWhateverTheirType) {
  tensors_.push_back({"transformer.h.1.attn.bias", "BOOL", {1, 1, 2, 2}, std::string(4, '\1')});
  tensors_.push_back({"transformer.h.0.attn.masked_bias", "F8_E4M3", {}, "x"});
  WriteTensors(tensors_);
  EXPECT_EQ(Reason(), "");
}

TEST_F(BrokenCheckpointTest, NamesWithoutPrefixDoAsWell) {
  for (Tensor& tensor : tensors_) absl::StrReplaceAll({{"transformer.", ""}}, &tensor.name);
  WriteTensors(tensors_);
  EXPECT_EQ(Reason(), "");
  tensors_[1].name = "transformer." + tensors_[1].name;
  WriteTensors(tensors_);
  EXPECT_EQ(Reason(), "CHECKPOINT_MISSING_TENSOR");
}

// The same model in two files.
class ShardedCheckpointTest : public BrokenCheckpointTest {
 protected:
  ShardedCheckpointTest() {
    std::filesystem::remove(folder_.Path("m/model.safetensors"));
    for (size_t i = 0; i < tensors_.size(); ++i) shards_[i % 2].push_back(tensors_[i]);
    Write();
  }

  void Write() {
    nlohmann::json map = nlohmann::json::object();
    for (int shard = 0; shard < 2; ++shard) {
      for (const Tensor& tensor : shards_[shard]) map[tensor.name] = kNames[shard];
      folder_.Write(absl::StrCat("m/", kNames[shard]), SafetensorsFile(shards_[shard]));
    }
    WriteIndex(map);
  }
  void WriteIndex(const nlohmann::json& map) {
    folder_.Write("m/model.safetensors.index.json",
                  nlohmann::json{{"metadata", {{"total_size", 1}}}, {"weight_map", map}}.dump());
    map_ = map;
  }

  static constexpr const char* kNames[] = {"model_00001-of-00002", "model_00002-of-00002"};
  std::vector<Tensor> shards_[2];
  nlohmann::json map_;
};

TEST_F(ShardedCheckpointTest, Opens) {
  const auto checkpoint = Checkpoint::Open(folder_.Path("m"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_THAT(checkpoint->files(),
              ElementsAre(folder_.Path("m/config.json"), folder_.Path("m/model_00001-of-00002"),
                          folder_.Path("m/model_00002-of-00002")));
  EXPECT_EQ(checkpoint->Weight(WeightRole::kHeadBias).tensor.bytes, tensors_.back().bytes);
}

TEST_F(ShardedCheckpointTest, AnIndexThatLies) {
  nlohmann::json map = map_;
  map["lm_head.bias"] = map["lm_head.weight"];  // in the other shard
  WriteIndex(map);
  EXPECT_EQ(Reason(), "CHECKPOINT_MISSING_TENSOR");
  map.erase("lm_head.bias");
  map["no.such.tensor"] = kNames[0];
  WriteIndex(map);
  EXPECT_EQ(Reason(), "CHECKPOINT_MISSING_TENSOR");
}

TEST_F(ShardedCheckpointTest, AMissingShard) {
  std::filesystem::remove(folder_.Path(absl::StrCat("m/", kNames[1])));
  EXPECT_EQ(Reason(), "CHECKPOINT_MISSING_FILE");
  EXPECT_EQ(Open().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Open().message()), HasSubstr(kNames[1]));
}

TEST_F(ShardedCheckpointTest, ATensorInBothShards) {
  shards_[1].push_back(shards_[0][2]);
  Write();
  EXPECT_EQ(Reason(), "CHECKPOINT_DUPLICATE_TENSOR");
}

TEST_F(ShardedCheckpointTest, ABrokenShardIsNamed) {
  folder_.Write(absl::StrCat("m/", kNames[1]), "short");
  EXPECT_EQ(Reason(), "CHECKPOINT_TRUNCATED");
  EXPECT_THAT(std::string(Open().message()), HasSubstr(kNames[1]));
}

TEST_F(ShardedCheckpointTest, ShardsOutsideTheFolder) {
  folder_.Write("elsewhere", "");
  map_["lm_head.bias"] = "../elsewhere";
  WriteIndex(map_);
  EXPECT_EQ(Reason(), "CHECKPOINT_INDEX");
}

}  // namespace
}  // namespace hopscope::checkpoint

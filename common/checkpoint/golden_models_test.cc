// Small models of every family, as transformers saved them.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/testing/write_checkpoint.h"
#include "gtest/gtest.h"

namespace hopscope::checkpoint {
namespace {

using testing::TempFolder;

// Models written by transformers 5, each with its config as that version writes it and as older
// ones did.
struct Golden {
  const char* name;
  const char* family;
  int64_t layers, heads, kv_heads, d_model, d_head;
  bool tied;
};

constexpr Golden kGolden[] = {
    {"bloom_h4", "bloom", 2, 4, 4, 48, 12, true},
    {"bloom_h6", "bloom", 2, 6, 6, 48, 8, true},
    {"gemma2", "gemma2", 2, 4, 2, 48, 16, true},
    {"gpt2_invlayer", "gpt2", 2, 4, 4, 48, 12, true},
    {"gpt2_noprefix", "gpt2", 2, 4, 4, 48, 12, true},
    {"gpt2_tied", "gpt2", 2, 4, 4, 48, 12, true},
    {"gpt2_untied", "gpt2", 2, 3, 3, 48, 16, false},
    {"gpt_neo_global", "gpt_neo", 2, 3, 3, 48, 16, true},
    {"gpt_neo_local", "gpt_neo", 2, 4, 4, 48, 12, true},
    {"gptj_1head", "gptj", 3, 1, 1, 48, 48, false},
    {"gptj_partial", "gptj", 2, 4, 4, 64, 16, false},
    {"llama31", "llama", 2, 4, 2, 64, 16, false},
    {"llama_gqa", "llama", 2, 6, 2, 48, 8, false},
    {"llama_sharded", "llama", 2, 6, 2, 48, 8, false},
    {"mistral_sw", "mistral", 2, 4, 2, 48, 12, false},
    {"mpt_h6", "mpt", 2, 6, 6, 48, 8, true},
    {"neox_legacy", "gpt_neox", 2, 3, 3, 48, 16, false},
    {"neox_r100_par", "gpt_neox", 2, 4, 4, 48, 12, false},
    {"neox_r25_par", "gpt_neox", 2, 3, 3, 48, 16, false},
    {"neox_r25_seq", "gpt_neox", 2, 4, 4, 64, 16, false},
    {"opt", "opt", 2, 4, 4, 48, 12, true},
    {"opt_f16", "opt", 2, 3, 3, 48, 16, true},
    {"qwen2", "qwen2", 2, 4, 2, 48, 12, false},
    {"qwen2_bf16", "qwen2", 2, 4, 1, 48, 12, true},
};

std::string GoldenFolder(absl::string_view name) {
  return absl::StrCat(HOPSCOPE_SOURCE_DIR, "/tests/golden/models/", name);
}

class GoldenModelTest : public ::testing::TestWithParam<Golden> {};

void ExpectTheSame(const Architecture& a, const Architecture& b) {
  EXPECT_EQ(a.layers, b.layers);
  EXPECT_EQ(a.heads, b.heads);
  EXPECT_EQ(a.kv_heads, b.kv_heads);
  EXPECT_EQ(a.d_model, b.d_model);
  EXPECT_EQ(a.d_head, b.d_head);
  EXPECT_EQ(a.d_mlp, b.d_mlp);
  EXPECT_EQ(a.vocab_size, b.vocab_size);
  EXPECT_EQ(a.position, b.position);
  EXPECT_EQ(a.learned_offset, b.learned_offset);
  EXPECT_EQ(a.rotary_dim, b.rotary_dim);
  EXPECT_EQ(a.rotary_angles, b.rotary_angles);
  EXPECT_EQ(a.alibi_slopes, b.alibi_slopes);
  EXPECT_EQ(a.norm, b.norm);
  EXPECT_EQ(a.norm_epsilon, b.norm_epsilon);
  EXPECT_EQ(a.norm_gain_offset, b.norm_gain_offset);
  EXPECT_EQ(a.block, b.block);
  EXPECT_EQ(a.activation, b.activation);
  EXPECT_EQ(a.gelu_tanh_factor, b.gelu_tanh_factor);
  EXPECT_EQ(a.gated_mlp, b.gated_mlp);
  EXPECT_EQ(a.attention_scale, b.attention_scale);
  EXPECT_EQ(a.attention_window, b.attention_window);
  EXPECT_EQ(a.attention_softcap, b.attention_softcap);
  EXPECT_EQ(a.logit_softcap, b.logit_softcap);
  EXPECT_EQ(a.embedding_scale, b.embedding_scale);
  EXPECT_EQ(a.embedding_norm, b.embedding_norm);
  EXPECT_EQ(a.tied_head, b.tied_head);
  EXPECT_EQ(a.special_tokens, b.special_tokens);
}

TEST_P(GoldenModelTest, OpensWithEitherConfig) {
  const Golden& golden = GetParam();
  const auto checkpoint = Checkpoint::Open(GoldenFolder(golden.name));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const Architecture& arch = checkpoint->architecture();
  EXPECT_EQ(arch.family, golden.family);
  EXPECT_EQ(arch.layers, golden.layers);
  EXPECT_EQ(arch.heads, golden.heads);
  EXPECT_EQ(arch.kv_heads, golden.kv_heads);
  EXPECT_EQ(arch.d_model, golden.d_model);
  EXPECT_EQ(arch.d_head, golden.d_head);
  EXPECT_EQ(arch.vocab_size, 97);
  EXPECT_EQ(arch.tied_head, golden.tied);

  TempFolder folder;
  std::filesystem::copy(GoldenFolder(golden.name), folder.Path("old"));
  std::filesystem::rename(folder.Path("old/config_v4.json"), folder.Path("old/config.json"));
  const auto old = Checkpoint::Open(folder.Path("old"));
  ASSERT_TRUE(old.ok()) << old.status();
  ExpectTheSame(arch, old->architecture());
}

TEST_P(GoldenModelTest, HasEveryRoleOfItsArchitecture) {
  const auto checkpoint = Checkpoint::Open(GoldenFolder(GetParam().name));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const Architecture& arch = checkpoint->architecture();
  const auto expect = [&](WeightRole role, int64_t layer, int64_t rows, int64_t columns) {
    ASSERT_TRUE(checkpoint->Has(role, layer)) << static_cast<int>(role) << " " << layer;
    const WeightSlice& slice = checkpoint->Weight(role, layer);
    EXPECT_EQ(slice.rows, rows) << static_cast<int>(role);
    EXPECT_EQ(slice.columns, columns) << static_cast<int>(role);
    // The last element lies inside the stored tensor.
    const int64_t last =
        slice.first + ((rows - 1) / slice.block) * slice.stride + (rows - 1) % slice.block;
    EXPECT_LT(last, slice.tensor.shape[slice.transposed ? 1 : 0]);
    int64_t elements = 1;
    for (const int64_t size : slice.tensor.shape) elements *= size;
    EXPECT_EQ(slice.tensor.bytes.size(), elements * BytesPerElement(slice.tensor.dtype));
  };
  const int64_t query = arch.heads * arch.d_head;
  const int64_t key = arch.kv_heads * arch.d_head;
  expect(WeightRole::kTokenEmbedding, -1, arch.vocab_size, arch.d_model);
  expect(WeightRole::kHead, -1, arch.vocab_size, arch.d_model);
  expect(WeightRole::kFinalNormGain, -1, arch.d_model, 1);
  if (arch.position == PositionKind::kLearned) {
    expect(WeightRole::kPositionEmbedding, -1, arch.n_positions + arch.learned_offset,
           arch.d_model);
  }
  if (arch.embedding_norm) {
    expect(WeightRole::kEmbeddingNormGain, -1, arch.d_model, 1);
    expect(WeightRole::kEmbeddingNormBias, -1, arch.d_model, 1);
  }
  const bool mpt = arch.family == "mpt";
  for (int64_t layer = 0; layer < arch.layers; ++layer) {
    expect(WeightRole::kNorm1Gain, layer, arch.d_model, 1);
    expect(WeightRole::kQuery, layer, query, arch.d_model);
    expect(WeightRole::kKey, layer, key, arch.d_model);
    expect(WeightRole::kValue, layer, key, arch.d_model);
    expect(WeightRole::kAttentionOut, layer, arch.d_model, query);
    expect(WeightRole::kMlpUp, layer, arch.d_mlp, arch.d_model);
    expect(WeightRole::kMlpDown, layer, arch.d_model, arch.d_mlp);
    if (arch.gated_mlp) expect(WeightRole::kMlpGate, layer, arch.d_mlp, arch.d_model);
    if (arch.block != BlockForm::kParallelSharedNorm) {
      expect(WeightRole::kNorm2Gain, layer, arch.d_model, 1);
    }
    if (arch.block == BlockForm::kSandwich) {
      expect(WeightRole::kNorm1PostGain, layer, arch.d_model, 1);
      expect(WeightRole::kNorm2PostGain, layer, arch.d_model, 1);
    }
    EXPECT_EQ(checkpoint->Has(WeightRole::kNorm1Bias, layer),
              arch.norm == NormKind::kLayerNorm && !mpt);
    const bool biased = arch.family == "gpt2" || arch.family == "opt" || arch.family == "bloom" ||
                        arch.family == "gpt_neox" || arch.family == "qwen2";
    EXPECT_EQ(checkpoint->Has(WeightRole::kQueryBias, layer), biased);
    if (biased) expect(WeightRole::kKeyBias, layer, key, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenModelTest, ::testing::ValuesIn(kGolden),
                         [](const auto& info) { return std::string(info.param.name); });

// Two ways of storing one model give the same weights.
TEST(GoldenModels, StorageDoesNotMatter) {
  const std::pair<const char*, const char*> pairs[] = {{"gpt2_noprefix", "gpt2_tied"},
                                                       {"llama_sharded", "llama_gqa"},
                                                       {"neox_legacy", "neox_r25_par"}};
  for (const auto& [variant, source] : pairs) {
    const auto a = Checkpoint::Open(GoldenFolder(variant));
    const auto b = Checkpoint::Open(GoldenFolder(source));
    ASSERT_TRUE(a.ok() && b.ok());
    int compared = 0;
    for (int role = 0; role <= static_cast<int>(WeightRole::kHeadBias); ++role) {
      for (int64_t layer = -1; layer < a->architecture().layers; ++layer) {
        const auto r = static_cast<WeightRole>(role);
        ASSERT_EQ(a->Has(r, layer), b->Has(r, layer));
        if (!a->Has(r, layer)) continue;
        EXPECT_EQ(a->Weight(r, layer).tensor.bytes, b->Weight(r, layer).tensor.bytes);
        ++compared;
      }
    }
    EXPECT_GT(compared, 20);
  }
}

TEST(GoldenModels, KeepTheirStoredType) {
  EXPECT_EQ(Checkpoint::Open(GoldenFolder("opt_f16"))->Weight(WeightRole::kHead).tensor.dtype,
            TensorDtype::kF16);
  EXPECT_EQ(Checkpoint::Open(GoldenFolder("qwen2_bf16"))->Weight(WeightRole::kHead).tensor.dtype,
            TensorDtype::kBF16);
}

}  // namespace
}  // namespace hopscope::checkpoint

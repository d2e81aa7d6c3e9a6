// Where a role's elements lie in fused and transposed tensors.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/testing/write_checkpoint.h"
#include "gtest/gtest.h"

namespace hopscope::checkpoint {
namespace {

using testing::SafetensorsFile;
using testing::TempFolder;
using testing::Tensor;

// Element (row, column) of a role, found as checkpoint.h defines it.
float Element(const WeightSlice& slice, int64_t row, int64_t column) {
  const int64_t block = slice.block == 0 ? slice.rows : slice.block;
  const int64_t stored_row = slice.first + (row / block) * slice.stride + row % block;
  const std::vector<int64_t>& shape = slice.tensor.shape;
  int64_t index = stored_row;
  if (shape.size() == 2) {
    index = slice.transposed ? column * shape[1] + stored_row : stored_row * shape[1] + column;
  }
  EXPECT_EQ(slice.tensor.dtype, TensorDtype::kF32);
  float value = 0;
  std::memcpy(&value, slice.tensor.bytes.data() + 4 * index, sizeof(value));
  return value;
}

// Fused tensors: each stored element says where it lies.
Tensor Counting(std::string name, std::vector<int64_t> shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  std::vector<float> values;
  for (int64_t i = 0; i < elements; ++i) values.push_back(static_cast<float>(i));
  return {std::move(name), "F32", std::move(shape), testing::Float32Bytes(values)};
}

// Opens a one-layer model, two heads of width 3 in a stream of width 6, after all tensors but those
// given have been made up.
absl::StatusOr<Checkpoint> OpenFused(const TempFolder& folder, absl::string_view config,
                                     const std::vector<Tensor>& tensors) {
  folder.Write("f/config.json", config);
  folder.Write("f/model.safetensors", SafetensorsFile(tensors));
  return Checkpoint::Open(folder.Path("f"));
}

TEST(FusedWeights, Gpt2StacksThirdsInAConv1d) {
  TempFolder folder;
  const auto opened = OpenFused(
      folder,
      R"({"model_type":"gpt2","n_layer":1,"n_head":2,"n_embd":6,"n_inner":5,"n_positions":4,
          "vocab_size":7})",
      {Counting("wte.weight", {7, 6}), Counting("wpe.weight", {4, 6}),
       Counting("h.0.ln_1.weight", {6}), Counting("h.0.ln_1.bias", {6}),
       Counting("h.0.attn.c_attn.weight", {6, 18}), Counting("h.0.attn.c_attn.bias", {18}),
       Counting("h.0.attn.c_proj.weight", {6, 6}), Counting("h.0.attn.c_proj.bias", {6}),
       Counting("h.0.ln_2.weight", {6}), Counting("h.0.ln_2.bias", {6}),
       Counting("h.0.mlp.c_fc.weight", {6, 5}), Counting("h.0.mlp.c_fc.bias", {5}),
       Counting("h.0.mlp.c_proj.weight", {5, 6}), Counting("h.0.mlp.c_proj.bias", {6}),
       Counting("ln_f.weight", {6}), Counting("ln_f.bias", {6})});
  ASSERT_TRUE(opened.ok()) << opened.status();
  const struct {
    WeightRole weight;
    WeightRole bias;
    int64_t column;
  } parts[] = {{WeightRole::kQuery, WeightRole::kQueryBias, 0},
               {WeightRole::kKey, WeightRole::kKeyBias, 6},
               {WeightRole::kValue, WeightRole::kValueBias, 12}};
  for (const auto& part : parts) {
    const WeightSlice& weight = opened->Weight(part.weight, 0);
    EXPECT_EQ(weight.rows, 6);
    EXPECT_EQ(weight.columns, 6);
    for (int64_t row = 0; row < 6; ++row) {
      EXPECT_EQ(Element(opened->Weight(part.bias, 0), row, 0), part.column + row);
      for (int64_t column = 0; column < 6; ++column) {
        EXPECT_EQ(Element(weight, row, column), column * 18 + part.column + row);
      }
    }
  }
  const WeightSlice& up = opened->Weight(WeightRole::kMlpUp, 0);
  EXPECT_EQ(up.rows, 5);
  EXPECT_EQ(Element(up, 4, 3), 3 * 5 + 4);
  EXPECT_EQ(Element(opened->Weight(WeightRole::kMlpDown, 0), 4, 3), 3 * 6 + 4);
  // Tied: the head is the embedding.
  EXPECT_TRUE(opened->architecture().tied_head);
  EXPECT_EQ(opened->Weight(WeightRole::kHead).tensor.bytes.data(),
            opened->Weight(WeightRole::kTokenEmbedding).tensor.bytes.data());
}

TEST(FusedWeights, BloomFusesHeadByHead) {
  TempFolder folder;
  const auto opened = OpenFused(
      folder, R"({"model_type":"bloom","n_layer":1,"n_head":2,"hidden_size":6,"vocab_size":7})",
      {Counting("word_embeddings.weight", {7, 6}),
       Counting("word_embeddings_layernorm.weight", {6}),
       Counting("word_embeddings_layernorm.bias", {6}), Counting("h.0.input_layernorm.weight", {6}),
       Counting("h.0.input_layernorm.bias", {6}),
       Counting("h.0.self_attention.query_key_value.weight", {18, 6}),
       Counting("h.0.self_attention.query_key_value.bias", {18}),
       Counting("h.0.self_attention.dense.weight", {6, 6}),
       Counting("h.0.self_attention.dense.bias", {6}),
       Counting("h.0.post_attention_layernorm.weight", {6}),
       Counting("h.0.post_attention_layernorm.bias", {6}),
       Counting("h.0.mlp.dense_h_to_4h.weight", {24, 6}),
       Counting("h.0.mlp.dense_h_to_4h.bias", {24}),
       Counting("h.0.mlp.dense_4h_to_h.weight", {6, 24}),
       Counting("h.0.mlp.dense_4h_to_h.bias", {6}), Counting("ln_f.weight", {6}),
       Counting("ln_f.bias", {6})});
  ASSERT_TRUE(opened.ok()) << opened.status();
  const std::pair<WeightRole, WeightRole> parts[] = {{WeightRole::kQuery, WeightRole::kQueryBias},
                                                     {WeightRole::kKey, WeightRole::kKeyBias},
                                                     {WeightRole::kValue, WeightRole::kValueBias}};
  for (int64_t part = 0; part < 3; ++part) {
    for (int64_t head = 0; head < 2; ++head) {
      for (int64_t e = 0; e < 3; ++e) {
        const int64_t stored = head * 9 + part * 3 + e;
        EXPECT_EQ(Element(opened->Weight(parts[part].second, 0), head * 3 + e, 0), stored);
        EXPECT_EQ(Element(opened->Weight(parts[part].first, 0), head * 3 + e, 5), stored * 6 + 5);
      }
    }
  }
}

}  // namespace
}  // namespace hopscope::checkpoint

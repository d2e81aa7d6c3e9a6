// GPT-NeoX (Pythia): rotary positions on part of each head, half-split; attention and MLP in
// parallel behind two norms, or one after the other; query, key and value fused head by head.
#include "common/checkpoint/families/family.h"
#include "common/checkpoint/families/rope.h"

namespace hopscope::checkpoint {
namespace {

constexpr TensorRule kTensors[] = {
    {WeightRole::kTokenEmbedding, "embed_in.weight"},
    {WeightRole::kNorm1Gain, "layers.{i}.input_layernorm.weight"},
    {WeightRole::kNorm1Bias, "layers.{i}.input_layernorm.bias"},
    {WeightRole::kQuery, "layers.{i}.attention.query_key_value.weight", Storage::kByHead},
    {WeightRole::kKey, "layers.{i}.attention.query_key_value.weight", Storage::kByHead},
    {WeightRole::kValue, "layers.{i}.attention.query_key_value.weight", Storage::kByHead},
    {WeightRole::kAttentionOut, "layers.{i}.attention.dense.weight"},
    {WeightRole::kNorm2Gain, "layers.{i}.post_attention_layernorm.weight"},
    {WeightRole::kNorm2Bias, "layers.{i}.post_attention_layernorm.bias"},
    {WeightRole::kMlpUp, "layers.{i}.mlp.dense_h_to_4h.weight"},
    {WeightRole::kMlpUpBias, "layers.{i}.mlp.dense_h_to_4h.bias"},
    {WeightRole::kMlpDown, "layers.{i}.mlp.dense_4h_to_h.weight"},
    {WeightRole::kMlpDownBias, "layers.{i}.mlp.dense_4h_to_h.bias"},
    {WeightRole::kFinalNormGain, "final_layer_norm.weight"},
    {WeightRole::kFinalNormBias, "final_layer_norm.bias"},
};

// With attention_bias.
constexpr TensorRule kAttentionBiases[] = {
    {WeightRole::kQueryBias, "layers.{i}.attention.query_key_value.bias", Storage::kByHead},
    {WeightRole::kKeyBias, "layers.{i}.attention.query_key_value.bias", Storage::kByHead},
    {WeightRole::kValueBias, "layers.{i}.attention.query_key_value.bias", Storage::kByHead},
    {WeightRole::kAttentionOutBias, "layers.{i}.attention.dense.bias"},
};

}  // namespace

void ReadGptNeoX(ConfigReader& config, ModelDescription& model) {
  Architecture& arch = model.architecture;
  ReadSizes(config, {"num_hidden_layers"}, {"num_attention_heads"}, {"hidden_size"}, arch);
  arch.d_mlp = config.Integer({"intermediate_size"}, 1, kMaxMlpWidth);
  arch.n_positions = config.IntegerOr({"max_position_embeddings"}, 1, kMaxPositions, 0);
  arch.norm_epsilon = config.NumberOr({"layer_norm_eps"}, 0, 1, 1e-5);
  config.ReadActivation({"hidden_act"}, "gelu", arch);
  arch.block = config.FlagOr({"use_parallel_residual"}, true) ? BlockForm::kParallelTwoNorms
                                                              : BlockForm::kSequential;
  ReadHalfSplitRope(config, /*default_share=*/0.25, arch);
  SetPlainAttention(arch);

  model.prefixes = {"gpt_neox.", ""};
  model.Add(kTensors);
  model.ignored = {"layers.{i}.attention.bias", "layers.{i}.attention.masked_bias",
                   "layers.{i}.attention.rotary_emb.inv_freq"};
  if (config.FlagOr({"attention_bias"}, true)) model.Add(kAttentionBiases);
  ReadHead(config, /*tied_by_default=*/false, "^embed_out.weight", model);
}

}  // namespace hopscope::checkpoint

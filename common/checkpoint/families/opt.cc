// OPT: learned positions whose table begins with two unused rows, sequential blocks with LayerNorms
// in front.
#include "common/checkpoint/families/family.h"

namespace hopscope::checkpoint {
namespace {

constexpr TensorRule kTensors[] = {
    {WeightRole::kTokenEmbedding, "embed_tokens.weight"},
    {WeightRole::kPositionEmbedding, "embed_positions.weight"},
    {WeightRole::kNorm1Gain, "layers.{i}.self_attn_layer_norm.weight"},
    {WeightRole::kNorm1Bias, "layers.{i}.self_attn_layer_norm.bias"},
    {WeightRole::kQuery, "layers.{i}.self_attn.q_proj.weight"},
    {WeightRole::kKey, "layers.{i}.self_attn.k_proj.weight"},
    {WeightRole::kValue, "layers.{i}.self_attn.v_proj.weight"},
    {WeightRole::kAttentionOut, "layers.{i}.self_attn.out_proj.weight"},
    {WeightRole::kNorm2Gain, "layers.{i}.final_layer_norm.weight"},
    {WeightRole::kNorm2Bias, "layers.{i}.final_layer_norm.bias"},
    {WeightRole::kMlpUp, "layers.{i}.fc1.weight"},
    {WeightRole::kMlpDown, "layers.{i}.fc2.weight"},
    {WeightRole::kFinalNormGain, "final_layer_norm.weight"},
    {WeightRole::kFinalNormBias, "final_layer_norm.bias"},
};

// With enable_bias.
constexpr TensorRule kBiases[] = {
    {WeightRole::kQueryBias, "layers.{i}.self_attn.q_proj.bias"},
    {WeightRole::kKeyBias, "layers.{i}.self_attn.k_proj.bias"},
    {WeightRole::kValueBias, "layers.{i}.self_attn.v_proj.bias"},
    {WeightRole::kAttentionOutBias, "layers.{i}.self_attn.out_proj.bias"},
    {WeightRole::kMlpUpBias, "layers.{i}.fc1.bias"},
    {WeightRole::kMlpDownBias, "layers.{i}.fc2.bias"},
};

}  // namespace

void ReadOpt(ConfigReader& config, ModelDescription& model) {
  Architecture& arch = model.architecture;
  ReadSizes(config, {"num_hidden_layers"}, {"num_attention_heads"}, {"hidden_size"}, arch);
  arch.d_mlp = config.Integer({"ffn_dim"}, 1, kMaxMlpWidth);
  arch.position = PositionKind::kLearned;
  arch.n_positions = config.Integer({"max_position_embeddings"}, 1, kMaxPositions);
  arch.learned_offset = 2;
  config.ReadActivation({"activation_function"}, "relu", arch);
  config.Only("do_layer_norm_before", true,
              "a norm after each block (as in opt-350m) is not implemented");
  config.Only("word_embed_proj_dim", arch.d_model, "embeddings of another width than hidden_size");
  config.Only("_remove_final_layer_norm", false, "the last norm is needed");
  config.Only("layer_norm_elementwise_affine", true, "norms without gain are not implemented");
  SetPlainAttention(arch);

  model.prefixes = {"model.decoder.", "decoder.", ""};
  model.Add(kTensors);
  if (config.FlagOr({"enable_bias"}, true)) model.Add(kBiases);
  ReadHead(config, /*tied_by_default=*/true, "^lm_head.weight", model);
}

}  // namespace hopscope::checkpoint

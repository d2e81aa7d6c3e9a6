// GPT-2: learned positions, sequential blocks with LayerNorms, query, key and value fused in one
// Conv1D.
#include <cmath>

#include "common/checkpoint/families/family.h"

namespace hopscope::checkpoint {
namespace {

constexpr TensorRule kTensors[] = {
    {WeightRole::kTokenEmbedding, "wte.weight"},
    {WeightRole::kPositionEmbedding, "wpe.weight"},
    {WeightRole::kNorm1Gain, "h.{i}.ln_1.weight"},
    {WeightRole::kNorm1Bias, "h.{i}.ln_1.bias"},
    {WeightRole::kQuery, "h.{i}.attn.c_attn.weight", Storage::kThirdsConv1d},
    {WeightRole::kQueryBias, "h.{i}.attn.c_attn.bias", Storage::kThirds},
    {WeightRole::kKey, "h.{i}.attn.c_attn.weight", Storage::kThirdsConv1d},
    {WeightRole::kKeyBias, "h.{i}.attn.c_attn.bias", Storage::kThirds},
    {WeightRole::kValue, "h.{i}.attn.c_attn.weight", Storage::kThirdsConv1d},
    {WeightRole::kValueBias, "h.{i}.attn.c_attn.bias", Storage::kThirds},
    {WeightRole::kAttentionOut, "h.{i}.attn.c_proj.weight", Storage::kConv1d},
    {WeightRole::kAttentionOutBias, "h.{i}.attn.c_proj.bias"},
    {WeightRole::kNorm2Gain, "h.{i}.ln_2.weight"},
    {WeightRole::kNorm2Bias, "h.{i}.ln_2.bias"},
    {WeightRole::kMlpUp, "h.{i}.mlp.c_fc.weight", Storage::kConv1d},
    {WeightRole::kMlpUpBias, "h.{i}.mlp.c_fc.bias"},
    {WeightRole::kMlpDown, "h.{i}.mlp.c_proj.weight", Storage::kConv1d},
    {WeightRole::kMlpDownBias, "h.{i}.mlp.c_proj.bias"},
    {WeightRole::kFinalNormGain, "ln_f.weight"},
    {WeightRole::kFinalNormBias, "ln_f.bias"},
};

}  // namespace

void ReadGpt2(ConfigReader& config, ModelDescription& model) {
  Architecture& arch = model.architecture;
  ReadSizes(config, {"n_layer", "num_hidden_layers"}, {"n_head", "num_attention_heads"},
            {"n_embd", "hidden_size"}, arch);
  arch.d_mlp = config.IntegerOr({"n_inner"}, 1, kMaxMlpWidth, 4 * arch.d_model);
  arch.position = PositionKind::kLearned;
  arch.n_positions = config.Integer({"n_positions", "max_position_embeddings"}, 1, kMaxPositions);
  arch.norm_epsilon = config.NumberOr({"layer_norm_epsilon"}, 0, 1, 1e-5);
  config.ReadActivation({"activation_function"}, "gelu_new", arch);
  config.Only("add_cross_attention", false, "there is no encoder to attend to");

  const bool scaled = config.FlagOr({"scale_attn_weights"}, true);
  const bool by_layer = config.FlagOr({"scale_attn_by_inverse_layer_idx"}, false);
  SetPlainAttention(arch, scaled ? 1 / std::sqrt(static_cast<double>(arch.d_head)) : 1);
  for (int64_t layer = 0; by_layer && layer < arch.layers; ++layer) {
    arch.attention_scale[static_cast<size_t>(layer)] /= static_cast<double>(layer + 1);
  }

  model.prefixes = {"transformer.", ""};
  model.Add(kTensors);
  model.ignored = {"h.{i}.attn.bias", "h.{i}.attn.masked_bias"};
  ReadHead(config, /*tied_by_default=*/true, "^lm_head.weight", model);
}

}  // namespace hopscope::checkpoint

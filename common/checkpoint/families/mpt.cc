// MPT: ALiBi, no biases anywhere (its LayerNorms have a gain alone), query, key and value stacked
// in thirds.
#include <cmath>

#include "common/checkpoint/families/alibi.h"
#include "common/checkpoint/families/family.h"

namespace hopscope::checkpoint {
namespace {

constexpr TensorRule kTensors[] = {
    {WeightRole::kTokenEmbedding, "wte.weight"},
    {WeightRole::kNorm1Gain, "blocks.{i}.norm_1.weight"},
    {WeightRole::kQuery, "blocks.{i}.attn.Wqkv.weight", Storage::kThirds},
    {WeightRole::kKey, "blocks.{i}.attn.Wqkv.weight", Storage::kThirds},
    {WeightRole::kValue, "blocks.{i}.attn.Wqkv.weight", Storage::kThirds},
    {WeightRole::kAttentionOut, "blocks.{i}.attn.out_proj.weight"},
    {WeightRole::kNorm2Gain, "blocks.{i}.norm_2.weight"},
    {WeightRole::kMlpUp, "blocks.{i}.ffn.up_proj.weight"},
    {WeightRole::kMlpDown, "blocks.{i}.ffn.down_proj.weight"},
    {WeightRole::kFinalNormGain, "norm_f.weight"},
};

}  // namespace

void ReadMpt(ConfigReader& config, ModelDescription& model) {
  Architecture& arch = model.architecture;
  ReadSizes(config, {"n_layers", "num_hidden_layers"}, {"n_heads", "num_attention_heads"},
            {"d_model", "hidden_size"}, arch);
  arch.d_mlp = arch.d_model * config.IntegerOr({"expansion_ratio"}, 1, 64, 4);
  if (arch.d_mlp > kMaxMlpWidth) config.Wrong("expansion_ratio", "makes the MLP too wide");
  arch.n_positions = config.IntegerOr({"max_seq_len"}, 1, kMaxPositions, 0);
  arch.position = PositionKind::kAlibi;
  arch.norm_epsilon = config.NumberOr({"layer_norm_epsilon"}, 0, 1, 1e-5);
  arch.activation = Activation::kGeluErf;
  config.Only("no_bias", true, "biases are not implemented");
  config.Only("logit_scale", nullptr, "scaled logits are not implemented");
  const std::string norm = config.TextOr({"norm_type"}, "low_precision_layernorm");
  if (norm != "low_precision_layernorm" && norm != "layernorm") {
    config.Unsupported("norm_type", "layernorm and low_precision_layernorm are");
  }

  ConfigReader mlp = config.Section("ffn_config");
  mlp.Only("ffn_type", "mptmlp", "the MLP is a plain one");
  mlp.Only("ffn_act_fn", nullptr, "its activation is the exact GELU");

  ConfigReader attention = config.Section("attn_config");
  attention.Only("attn_type", "multihead_attention", "every head has keys and values of its own");
  attention.Only("kv_n_heads", arch.heads, "every head has keys and values of its own");
  attention.Only("rope", false, "positions are ALiBi");
  attention.Only("sliding_window_size", -1, "every key is seen");
  attention.Only("alibi", true, "there is no other position encoding");
  attention.Only("qk_ln", false, "norms on queries and keys are not implemented");
  attention.Only("qk_gn", false, "norms on queries and keys are not implemented");
  attention.Only("clip_qkv", nullptr, "clipped queries, keys and values are not implemented");
  attention.Only("prefix_lm", false, "attention is causal");
  attention.Only("attn_uses_sequence_id", false, "a sequence is one document");
  SetPlainAttention(arch, attention.NumberOr({"softmax_scale"}, 1e-6, 1e6,
                                             1 / std::sqrt(static_cast<double>(arch.d_head))));
  arch.alibi_slopes = MptSlopes(arch.heads, attention.NumberOr({"alibi_bias_max"}, 0, 1024, 8));

  model.prefixes = {"transformer.", ""};
  model.Add(kTensors);
  ReadHead(config, /*tied_by_default=*/true, "^lm_head.weight", model);
}

}  // namespace hopscope::checkpoint

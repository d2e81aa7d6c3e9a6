// GPT-J: rotary positions on interleaved pairs, attention and MLP in parallel behind one LayerNorm,
// a head with a bias.
#include "common/checkpoint/families/family.h"
#include "common/checkpoint/families/rope.h"

namespace hopscope::checkpoint {
namespace {

constexpr TensorRule kTensors[] = {
    {WeightRole::kTokenEmbedding, "wte.weight"},
    {WeightRole::kNorm1Gain, "h.{i}.ln_1.weight"},
    {WeightRole::kNorm1Bias, "h.{i}.ln_1.bias"},
    {WeightRole::kQuery, "h.{i}.attn.q_proj.weight"},
    {WeightRole::kKey, "h.{i}.attn.k_proj.weight"},
    {WeightRole::kValue, "h.{i}.attn.v_proj.weight"},
    {WeightRole::kAttentionOut, "h.{i}.attn.out_proj.weight"},
    {WeightRole::kMlpUp, "h.{i}.mlp.fc_in.weight"},
    {WeightRole::kMlpUpBias, "h.{i}.mlp.fc_in.bias"},
    {WeightRole::kMlpDown, "h.{i}.mlp.fc_out.weight"},
    {WeightRole::kMlpDownBias, "h.{i}.mlp.fc_out.bias"},
    {WeightRole::kFinalNormGain, "ln_f.weight"},
    {WeightRole::kFinalNormBias, "ln_f.bias"},
    {WeightRole::kHeadBias, "^lm_head.bias"},
};

}  // namespace

void ReadGptJ(ConfigReader& config, ModelDescription& model) {
  Architecture& arch = model.architecture;
  ReadSizes(config, {"n_layer", "num_hidden_layers"}, {"n_head", "num_attention_heads"},
            {"n_embd", "hidden_size"}, arch);
  arch.d_mlp = config.IntegerOr({"n_inner"}, 1, kMaxMlpWidth, 4 * arch.d_model);
  arch.n_positions = config.Integer({"n_positions", "max_position_embeddings"}, 1, kMaxPositions);
  arch.norm_epsilon = config.NumberOr({"layer_norm_epsilon"}, 0, 1, 1e-5);
  arch.block = BlockForm::kParallelSharedNorm;
  config.ReadActivation({"activation_function"}, "gelu_new", arch);
  config.Only("rotary", true, "GPT-J without rotary positions has none at all");
  config.Only("scale_attn_weights", true, "attention is always scaled");
  config.Only("rope_scaling", nullptr, "GPT-J has no scaled rotary positions");

  arch.position = PositionKind::kRotaryInterleaved;
  arch.rotary_dim = config.Integer({"rotary_dim"}, 2, kMaxHeadWidth);
  if (arch.rotary_dim % 2 != 0 || arch.rotary_dim > arch.d_head) {
    config.Wrong("rotary_dim",
                 absl::StrCat("must be even and at most the width of a head, ", arch.d_head));
  }
  if (!config.ok()) return;
  arch.rotary_angles = RotaryAngles(arch.rotary_dim, 10000);
  SetPlainAttention(arch);

  model.prefixes = {"transformer.", ""};
  model.Add(kTensors);
  ReadHead(config, /*tied_by_default=*/false, "^lm_head.weight", model);
  model.ignored.insert(model.ignored.end(), {"h.{i}.attn.bias", "h.{i}.attn.masked_bias"});
}

}  // namespace hopscope::checkpoint

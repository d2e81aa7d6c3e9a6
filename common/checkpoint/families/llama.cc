// Llama and its near relatives Mistral, Qwen2 and Gemma-2: rotary positions on whole heads,
// half-split; RMSNorm; a gated MLP; fewer key and value heads than query heads.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/families/family.h"
#include "common/checkpoint/families/rope.h"

namespace hopscope::checkpoint {
namespace {

constexpr TensorRule kTensors[] = {
    {WeightRole::kTokenEmbedding, "embed_tokens.weight"},
    {WeightRole::kNorm1Gain, "layers.{i}.input_layernorm.weight"},
    {WeightRole::kQuery, "layers.{i}.self_attn.q_proj.weight"},
    {WeightRole::kKey, "layers.{i}.self_attn.k_proj.weight"},
    {WeightRole::kValue, "layers.{i}.self_attn.v_proj.weight"},
    {WeightRole::kAttentionOut, "layers.{i}.self_attn.o_proj.weight"},
    {WeightRole::kMlpGate, "layers.{i}.mlp.gate_proj.weight"},
    {WeightRole::kMlpUp, "layers.{i}.mlp.up_proj.weight"},
    {WeightRole::kMlpDown, "layers.{i}.mlp.down_proj.weight"},
    {WeightRole::kFinalNormGain, "norm.weight"},
};

// The norm before the MLP; all but Gemma-2, where the same name is the norm after attention.
constexpr TensorRule kNorm2[] = {
    {WeightRole::kNorm2Gain, "layers.{i}.post_attention_layernorm.weight"},
};

constexpr TensorRule kGemma2Norms[] = {
    {WeightRole::kNorm1PostGain, "layers.{i}.post_attention_layernorm.weight"},
    {WeightRole::kNorm2Gain, "layers.{i}.pre_feedforward_layernorm.weight"},
    {WeightRole::kNorm2PostGain, "layers.{i}.post_feedforward_layernorm.weight"},
};

constexpr TensorRule kQueryKeyValueBiases[] = {
    {WeightRole::kQueryBias, "layers.{i}.self_attn.q_proj.bias"},
    {WeightRole::kKeyBias, "layers.{i}.self_attn.k_proj.bias"},
    {WeightRole::kValueBias, "layers.{i}.self_attn.v_proj.bias"},
};

constexpr TensorRule kAttentionOutBias[] = {
    {WeightRole::kAttentionOutBias, "layers.{i}.self_attn.o_proj.bias"},
};

// What the four have in common.
void ReadCommon(ConfigReader& config, double default_epsilon, ModelDescription& model) {
  Architecture& arch = model.architecture;
  arch.layers = config.Integer({"num_hidden_layers"}, 1, kMaxLayers);
  arch.heads = config.Integer({"num_attention_heads"}, 1, kMaxHeads);
  arch.kv_heads = config.IntegerOr({"num_key_value_heads"}, 1, kMaxHeads, arch.heads);
  if (arch.heads % arch.kv_heads != 0) {
    config.Wrong("num_key_value_heads",
                 absl::StrCat("must divide num_attention_heads, ", arch.heads));
  }
  arch.d_model = config.Integer({"hidden_size"}, 1, kMaxWidth);
  if (config.Has("head_dim")) {
    arch.d_head = config.Integer({"head_dim"}, 2, kMaxHeadWidth);
  } else {
    arch.d_head = arch.d_model / arch.heads;
    if (arch.d_model % arch.heads != 0 || arch.d_head > kMaxHeadWidth) {
      config.Wrong("hidden_size", absl::StrCat("must be a multiple of num_attention_heads, ",
                                               arch.heads, ", unless head_dim is given"));
    }
  }
  arch.d_mlp = config.Integer({"intermediate_size"}, 1, kMaxMlpWidth);
  arch.vocab_size = config.Integer({"vocab_size"}, 1, kMaxVocabulary);
  arch.n_positions = config.IntegerOr({"max_position_embeddings"}, 1, kMaxPositions, 0);
  arch.norm = NormKind::kRmsNorm;
  arch.norm_epsilon = config.NumberOr({"rms_norm_eps"}, 0, 1, default_epsilon);
  config.ReadActivation({"hidden_act"}, "silu", arch);
  arch.gated_mlp = true;
  config.Only("mlp_bias", false, "biases in the MLP are not implemented");
  ReadHalfSplitRope(config, /*default_share=*/1, arch);
  if (arch.rotary_dim != arch.d_head) {
    config.Unsupported(config.Has("rope_parameters") ? "rope_parameters" : "partial_rotary_factor",
                       "the whole head rotates");
  }
  SetPlainAttention(arch);

  model.prefixes = {"model.", ""};
  model.Add(kTensors);
  model.ignored = {"layers.{i}.self_attn.rotary_emb.inv_freq"};
  if (config.FlagOr({"attention_bias"}, false)) {
    model.Add(kQueryKeyValueBiases);
    model.Add(kAttentionOutBias);
  }
}

// Which layers see only a window: layer_types, where it is given, or else `slides`.
template <typename Slides>
void ReadWindows(ConfigReader& config, int64_t window, Slides slides, Architecture& arch) {
  const nlohmann::json& types = config.Raw("layer_types");
  if (!types.is_null() && (!types.is_array() || types.size() != static_cast<size_t>(arch.layers))) {
    config.Wrong("layer_types", "must be a list with one kind a layer");
    return;
  }
  for (int64_t layer = 0; layer < arch.layers; ++layer) {
    bool sliding = slides(layer);
    if (!types.is_null()) {
      const nlohmann::json& type = types[static_cast<size_t>(layer)];
      if (type != "sliding_attention" && type != "full_attention") {
        config.Unsupported("layer_types", "sliding_attention and full_attention are");
        return;
      }
      sliding = type == "sliding_attention";
    }
    if (sliding && window == 0) {
      config.Wrong("sliding_window", "must be given, since there are layers that slide");
      return;
    }
    arch.attention_window[static_cast<size_t>(layer)] = sliding ? window : 0;
  }
}

// 0 where it is null; where it is not there at all, what the classes of transformers take it for.
int64_t SlidingWindow(ConfigReader& config) {
  return config.IntegerOr({"sliding_window"}, 1, kMaxPositions,
                          config.Contains("sliding_window") ? 0 : 4096);
}

}  // namespace

void ReadLlama(ConfigReader& config, ModelDescription& model) {
  ReadCommon(config, /*default_epsilon=*/1e-6, model);
  model.Add(kNorm2);
  ReadHead(config, /*tied_by_default=*/false, "^lm_head.weight", model);
}

void ReadMistral(ConfigReader& config, ModelDescription& model) {
  ReadCommon(config, /*default_epsilon=*/1e-6, model);
  config.Require("num_key_value_heads");
  const int64_t window = SlidingWindow(config);
  ReadWindows(
      config, window, [window](int64_t) { return window > 0; }, model.architecture);
  model.Add(kNorm2);
  ReadHead(config, /*tied_by_default=*/false, "^lm_head.weight", model);
}

void ReadQwen2(ConfigReader& config, ModelDescription& model) {
  ReadCommon(config, /*default_epsilon=*/1e-6, model);
  config.Require("num_key_value_heads");
  const bool use_window = config.FlagOr({"use_sliding_window"}, false);
  const int64_t window = use_window ? SlidingWindow(config) : 0;
  // The first layers see everything, the later ones slide.
  const int64_t full = config.IntegerOr({"max_window_layers"}, 0, kMaxPositions, 28);
  ReadWindows(
      config, window, [use_window, full](int64_t layer) { return use_window && layer >= full; },
      model.architecture);
  config.Only("attention_bias", false, "queries, keys and values always have a bias");
  config.Only("use_mrope", false, "positions in several dimensions are not implemented");
  model.Add(kNorm2);
  model.Add(kQueryKeyValueBiases);
  ReadHead(config, /*tied_by_default=*/false, "^lm_head.weight", model);
}

void ReadGemma2(ConfigReader& config, ModelDescription& model) {
  ReadCommon(config, /*default_epsilon=*/1e-6, model);
  Architecture& arch = model.architecture;
  config.ReadActivation({"hidden_activation", "hidden_act"}, "gelu_pytorch_tanh", arch);
  arch.block = BlockForm::kSandwich;
  arch.norm_gain_offset = 1;
  arch.embedding_scale = std::sqrt(static_cast<double>(arch.d_model));
  config.Require("head_dim");
  config.Require("num_key_value_heads");
  config.Require("attn_logit_softcapping");
  config.Require("final_logit_softcapping");
  arch.attention_softcap = config.NumberOr({"attn_logit_softcapping"}, 1e-3, 1e6, 0);
  arch.logit_softcap = config.NumberOr({"final_logit_softcapping"}, 1e-3, 1e6, 0);
  const double scalar = config.NumberOr({"query_pre_attn_scalar"}, 1e-3, 1e6, 256);
  SetPlainAttention(arch, 1 / std::sqrt(scalar));
  ReadWindows(
      config, SlidingWindow(config), [](int64_t layer) { return layer % 2 == 0; }, arch);
  if (config.FlagOr({"use_bidirectional_attention"}, false)) {
    config.Unsupported("use_bidirectional_attention", "attention is causal");
  }
  model.Add(kGemma2Norms);
  ReadHead(config, /*tied_by_default=*/true, "^lm_head.weight", model);
}

}  // namespace hopscope::checkpoint

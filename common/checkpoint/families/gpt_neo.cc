// GPT-Neo: learned positions, attention without 1/sqrt(d_head), layers that look at all keys or at
// a window.
#include <string>
#include <vector>

#include "common/checkpoint/families/family.h"

namespace hopscope::checkpoint {
namespace {

constexpr TensorRule kTensors[] = {
    {WeightRole::kTokenEmbedding, "wte.weight"},
    {WeightRole::kPositionEmbedding, "wpe.weight"},
    {WeightRole::kNorm1Gain, "h.{i}.ln_1.weight"},
    {WeightRole::kNorm1Bias, "h.{i}.ln_1.bias"},
    {WeightRole::kQuery, "h.{i}.attn.attention.q_proj.weight"},
    {WeightRole::kKey, "h.{i}.attn.attention.k_proj.weight"},
    {WeightRole::kValue, "h.{i}.attn.attention.v_proj.weight"},
    {WeightRole::kAttentionOut, "h.{i}.attn.attention.out_proj.weight"},
    {WeightRole::kAttentionOutBias, "h.{i}.attn.attention.out_proj.bias"},
    {WeightRole::kNorm2Gain, "h.{i}.ln_2.weight"},
    {WeightRole::kNorm2Bias, "h.{i}.ln_2.bias"},
    {WeightRole::kMlpUp, "h.{i}.mlp.c_fc.weight"},
    {WeightRole::kMlpUpBias, "h.{i}.mlp.c_fc.bias"},
    {WeightRole::kMlpDown, "h.{i}.mlp.c_proj.weight"},
    {WeightRole::kMlpDownBias, "h.{i}.mlp.c_proj.bias"},
    {WeightRole::kFinalNormGain, "ln_f.weight"},
    {WeightRole::kFinalNormBias, "ln_f.bias"},
};

using Kinds = std::vector<std::string>;

// One kind of attention a layer, from a list such as ["global", "local"]; false where it is none.
bool AppendKinds(const nlohmann::json& list, Kinds& kinds) {
  if (!list.is_array()) return false;
  for (const nlohmann::json& kind : list) {
    if (!kind.is_string() || kinds.size() >= static_cast<size_t>(kMaxLayers)) return false;
    kinds.push_back(kind.get<std::string>());
  }
  return true;
}

// From pairs of a list and how often it is repeated, such as [[["global", "local"], 12]].
bool ExpandTypes(const nlohmann::json& types, Kinds& kinds) {
  if (!types.is_array()) return false;
  for (const nlohmann::json& type : types) {
    if (!type.is_array() || type.size() != 2 || !type[1].is_number_unsigned()) return false;
    const auto times = type[1].get<uint64_t>();
    if (times > static_cast<uint64_t>(kMaxLayers)) return false;
    for (uint64_t i = 0; i < times; ++i) {
      if (!AppendKinds(type[0], kinds)) return false;
    }
  }
  return true;
}

}  // namespace

void ReadGptNeo(ConfigReader& config, ModelDescription& model) {
  Architecture& arch = model.architecture;
  ReadSizes(config, {"num_layers", "num_hidden_layers"}, {"num_heads", "num_attention_heads"},
            {"hidden_size"}, arch);
  arch.d_mlp = config.IntegerOr({"intermediate_size"}, 1, kMaxMlpWidth, 4 * arch.d_model);
  arch.position = PositionKind::kLearned;
  arch.n_positions = config.Integer({"max_position_embeddings"}, 1, kMaxPositions);
  arch.norm_epsilon = config.NumberOr({"layer_norm_epsilon"}, 0, 1, 1e-5);
  config.ReadActivation({"activation_function"}, "gelu_new", arch);

  SetPlainAttention(arch, /*scale=*/1);
  Kinds expanded;
  Kinds listed;
  const bool has_types = config.Has("attention_types");
  const bool has_layers = config.Has("attention_layers");
  if (has_types && !ExpandTypes(config.Raw("attention_types"), expanded)) {
    config.Wrong("attention_types", "must be a list of [[kind, ...], times]");
  }
  if (has_layers && !AppendKinds(config.Raw("attention_layers"), listed)) {
    config.Wrong("attention_layers", "must be a list of kinds");
  }
  if (!has_types && !has_layers) {
    config.Wrong("attention_types", "must say which layers are global and which local");
  }
  if (has_types && has_layers && expanded != listed) {
    config.Wrong("attention_layers", "must agree with attention_types");
  }
  const Kinds& kinds = has_types ? expanded : listed;
  const absl::string_view key = has_types ? "attention_types" : "attention_layers";
  if (kinds.size() != static_cast<size_t>(arch.layers)) {
    config.Wrong(key, "must give each layer one kind of attention");
  }
  if (!config.ok()) return;
  for (size_t layer = 0; layer < kinds.size(); ++layer) {
    if (kinds[layer] == "local") {
      arch.attention_window[layer] = config.IntegerOr({"window_size"}, 1, kMaxPositions, 256);
    } else if (kinds[layer] != "global") {
      config.Unsupported(key, "global and local are");
    }
  }

  model.prefixes = {"transformer.", ""};
  model.Add(kTensors);
  model.ignored = {"h.{i}.attn.attention.bias", "h.{i}.attn.attention.masked_bias"};
  ReadHead(config, /*tied_by_default=*/true, "^lm_head.weight", model);
}

}  // namespace hopscope::checkpoint

#include <cmath>
#include <iterator>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/checkpoint/errors.h"
#include "common/checkpoint/families/family.h"
#include "common/checkpoint/strict_json.h"
#include "common/status.h"

namespace hopscope::checkpoint {
namespace {

constexpr Family kFamilies[] = {
    {"bloom", ReadBloom},       {"gemma2", ReadGemma2},    {"gpt2", ReadGpt2},
    {"gpt_neo", ReadGptNeo},    {"gpt_neox", ReadGptNeoX}, {"gptj", ReadGptJ},
    {"hopscope", ReadHopscope}, {"llama", ReadLlama},      {"mistral", ReadMistral},
    {"mpt", ReadMpt},           {"opt", ReadOpt},          {"qwen2", ReadQwen2},
};

// Ids that the config names as begin, end and padding; those outside the vocabulary (a common
// left-over) cannot occur.
std::vector<int64_t> SpecialTokens(const ConfigReader& config, int64_t vocab_size) {
  std::vector<int64_t> tokens;
  absl::flat_hash_set<int64_t> known;
  const auto add = [&](const nlohmann::json& id) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= static_cast<uint64_t>(vocab_size)) return;
    const auto token = id.get<int64_t>();
    if (known.insert(token).second) tokens.push_back(token);
  };
  for (const absl::string_view key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    const nlohmann::json& value = config.Raw(key);
    if (value.is_array()) {
      for (const nlohmann::json& id : value) add(id);
    } else {
      add(value);
    }
  }
  return tokens;
}

// Settings by which relatives of a family differ from it. transformers ignores those that a
// model_type does not have, and whoever trained the model need not have: with one of them it may be
// another model than the family's, and is refused rather than computed as something similar. A
// value that leaves everything as it is may stand there.
struct Modifier {
  absl::string_view key;
  const char* neutral;  // as JSON; null is always neutral
  const char* why;
};
constexpr char kNoQueryKeyNorm[] = "norms on queries and keys are not implemented";
constexpr char kNoExperts[] = "mixtures of experts are not implemented";
constexpr char kNoMultiplier[] = "scaled branches are not implemented";
constexpr Modifier kModifiers[] = {
    {"qk_norm", "false", kNoQueryKeyNorm},
    {"use_qk_norm", "false", kNoQueryKeyNorm},
    {"qk_layernorm", "false", kNoQueryKeyNorm},
    {"use_qk_layernorm", "false", kNoQueryKeyNorm},
    {"qk_ln", "false", kNoQueryKeyNorm},
    {"clip_qkv", "null", "clipped queries, keys and values are not implemented"},
    {"num_experts", "0", kNoExperts},
    {"num_local_experts", "0", kNoExperts},
    {"n_routed_experts", "0", kNoExperts},
    {"embedding_multiplier", "1", kNoMultiplier},
    {"residual_multiplier", "1", kNoMultiplier},
    {"attention_multiplier", "1", kNoMultiplier},
    {"logits_scaling", "1", kNoMultiplier},
    {"logit_scale", "1", kNoMultiplier},
    {"no_rope_layers", "null", "layers without positions are not implemented"},
    {"attention_chunk_size", "null", "attention in chunks is not implemented"},
    {"attention_sinks", "null", "attention sinks are not implemented"},
    {"is_encoder_decoder", "false", "there is no encoder to attend to"},
    {"use_bidirectional_attention", "false", "attention is causal"},
    {"adapters", "null", "adapters are not implemented"},
};

// Settings that some families have, for all the others.
void RefuseWhatIsOfOtherFamilies(ConfigReader& config, const Architecture& arch) {
  const absl::string_view family = arch.family;
  const bool windows = family == "mistral" || family == "qwen2" || family == "gemma2";
  if (!windows) {
    config.Only("sliding_window", nullptr, "this family has no sliding windows");
    const nlohmann::json& types = config.Raw("layer_types");
    for (const nlohmann::json& type : types) {
      if (type != "full_attention") {
        config.Unsupported("layer_types", "every layer of this family sees everything");
      }
    }
  }
  if (family != "gemma2") {
    config.Only("attn_logit_softcapping", nullptr, "this family has no caps on logits");
    config.Only("final_logit_softcapping", nullptr, "this family has no caps on logits");
    config.Only("query_pre_attn_scalar", nullptr, "this family scales by the width of a head");
  }
  const bool half_split = arch.position == PositionKind::kRotaryHalfSplit;
  const bool rotates = half_split || arch.position == PositionKind::kRotaryInterleaved;
  if (!half_split) {
    config.Only("rope_scaling", nullptr, "this family has no scaled rotary positions");
    config.Only("rope_parameters", nullptr, "this family has no such rotary positions");
  }
  if (arch.position != PositionKind::kAlibi) {
    config.Only("alibi", false, "this family has no ALiBi");
  }
  const std::string positions = config.TextOr({"position_embedding_type"}, "");
  const bool fits = positions.empty() ||
                    (arch.position == PositionKind::kLearned && positions == "absolute") ||
                    (arch.position == PositionKind::kAlibi && positions == "alibi") ||
                    (rotates && (positions == "rope" || positions == "rotary"));
  if (!fits) config.Unsupported("position_embedding_type", "this family has other positions");
}

}  // namespace

absl::Span<const Family> Families() { return kFamilies; }

absl::StatusOr<ModelDescription> DescribeModel(absl::string_view config_text) {
  const absl::StatusOr<nlohmann::json> json = ParseStrictJson(config_text, /*max_depth=*/32);
  if (!json.ok()) {
    return BrokenCheckpoint("CHECKPOINT_CONFIG_NOT_JSON",
                            absl::StrCat("config.json is not JSON: ", json.status().message()));
  }
  ConfigReader config(*json);
  const std::string model_type = config.TextOr({"model_type"}, "");
  HOPSCOPE_RETURN_IF_ERROR(config.status());
  for (const Family& family : kFamilies) {
    if (family.model_type != model_type) continue;
    ModelDescription model;
    model.architecture.family = model_type;
    config.Only("quantization_config", nullptr, "weights must be stored as plain numbers");
    for (const Modifier& modifier : kModifiers) {
      config.Only(modifier.key, nlohmann::json::parse(modifier.neutral), modifier.why);
    }
    family.read(config, model);
    RefuseWhatIsOfOtherFamilies(config, model.architecture);
    HOPSCOPE_RETURN_IF_ERROR(config.status());
    model.architecture.special_tokens = SpecialTokens(config, model.architecture.vocab_size);
    return model;
  }
  const std::string known = absl::StrJoin(
      kFamilies, ", ",
      [](std::string* out, const Family& family) { absl::StrAppend(out, family.model_type); });
  const std::string value = ShortJson(config.Raw("model_type"));
  return BrokenCheckpoint(
      "CHECKPOINT_UNSUPPORTED_FAMILY",
      absl::StrCat("config.json: model_type is ", value, "; supported are ", known),
      {{"field", "model_type"}, {"value", value}, {"allowed", known}});
}

RoleShape ShapeOf(WeightRole role, const Architecture& arch) {
  const int64_t query = arch.heads * arch.d_head;
  const int64_t key = arch.kv_heads * arch.d_head;
  switch (role) {
    case WeightRole::kTokenEmbedding:
    case WeightRole::kHead:
      return {arch.vocab_size, arch.d_model};
    case WeightRole::kHeadBias:
      return {arch.vocab_size};
    case WeightRole::kPositionEmbedding:
      return {arch.n_positions + arch.learned_offset, arch.d_model};
    case WeightRole::kEmbeddingNormGain:
    case WeightRole::kEmbeddingNormBias:
    case WeightRole::kNorm1Gain:
    case WeightRole::kNorm1Bias:
    case WeightRole::kNorm1PostGain:
    case WeightRole::kNorm2Gain:
    case WeightRole::kNorm2Bias:
    case WeightRole::kNorm2PostGain:
    case WeightRole::kFinalNormGain:
    case WeightRole::kFinalNormBias:
    case WeightRole::kAttentionOutBias:
    case WeightRole::kMlpDownBias:
      return {arch.d_model};
    case WeightRole::kQuery:
      return {query, arch.d_model};
    case WeightRole::kQueryBias:
      return {query};
    case WeightRole::kKey:
    case WeightRole::kValue:
      return {key, arch.d_model};
    case WeightRole::kKeyBias:
    case WeightRole::kValueBias:
      return {key};
    case WeightRole::kAttentionOut:
      return {arch.d_model, query};
    case WeightRole::kMlpGate:
    case WeightRole::kMlpUp:
      return {arch.d_mlp, arch.d_model};
    case WeightRole::kMlpUpBias:
      return {arch.d_mlp};
    case WeightRole::kMlpDown:
      return {arch.d_model, arch.d_mlp};
  }
  return {};
}

void ReadSizes(ConfigReader& config, ConfigReader::Keys layers, ConfigReader::Keys heads,
               ConfigReader::Keys d_model, Architecture& arch) {
  arch.layers = config.Integer(layers, 1, kMaxLayers);
  arch.heads = config.Integer(heads, 1, kMaxHeads);
  arch.d_model = config.Integer(d_model, 1, kMaxWidth);
  arch.vocab_size = config.Integer({"vocab_size"}, 1, kMaxVocabulary);
  arch.kv_heads = arch.heads;
  arch.d_head = arch.d_model / arch.heads;
  if (arch.d_model % arch.heads != 0 || arch.d_head > kMaxHeadWidth) {
    for (const absl::string_view key : d_model) {
      if (!config.Has(key)) continue;
      config.Wrong(key, absl::StrCat("must be a multiple of the number of heads, ", arch.heads,
                                     ", and at most ", kMaxHeadWidth, " a head"));
    }
  }
}

void SetPlainAttention(Architecture& arch) {
  SetPlainAttention(arch, 1 / std::sqrt(static_cast<double>(arch.d_head)));
}

void SetPlainAttention(Architecture& arch, double scale) {
  arch.attention_scale.assign(arch.layers, scale);
  arch.attention_window.assign(arch.layers, 0);
}

void ReadHead(ConfigReader& config, bool tied_by_default, absl::string_view name,
              ModelDescription& model) {
  model.architecture.tied_head = config.FlagOr({"tie_word_embeddings"}, tied_by_default);
  if (model.architecture.tied_head) {
    model.ignored.push_back(name);
  } else {
    model.tensors.push_back({WeightRole::kHead, name});
  }
}

}  // namespace hopscope::checkpoint

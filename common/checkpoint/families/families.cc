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
    {"bloom", ReadBloom},    {"gemma2", ReadGemma2},    {"gpt2", ReadGpt2},
    {"gpt_neo", ReadGptNeo}, {"gpt_neox", ReadGptNeoX}, {"gptj", ReadGptJ},
    {"llama", ReadLlama},    {"mistral", ReadMistral},  {"mpt", ReadMpt},
    {"opt", ReadOpt},        {"qwen2", ReadQwen2},
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
    family.read(config, model);
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

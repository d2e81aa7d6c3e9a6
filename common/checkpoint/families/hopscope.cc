// Hopscope's own family, for models that are constructed rather than trained: every part of a block
// can be left out. docs/hopscope_model.md describes its config.json, in which no key is without
// meaning.
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/checkpoint/families/family.h"

namespace hopscope::checkpoint {
namespace {

// Far above anything that makes sense, and far from overflow.
constexpr double kLargest = 1e9;

constexpr TensorRule kTensors[] = {
    {WeightRole::kTokenEmbedding, "embedding.weight"},
    {WeightRole::kQuery, "layers.{i}.query.weight"},
    {WeightRole::kKey, "layers.{i}.key.weight"},
    {WeightRole::kValue, "layers.{i}.value.weight"},
    {WeightRole::kAttentionOut, "layers.{i}.attention_out.weight"},
};

constexpr TensorRule kPositions[] = {{WeightRole::kPositionEmbedding, "positions.weight"}};

constexpr TensorRule kMlp[] = {
    {WeightRole::kMlpUp, "layers.{i}.mlp_up.weight"},
    {WeightRole::kMlpDown, "layers.{i}.mlp_down.weight"},
};

struct Bias {
  absl::string_view name;  // in the list "biases"
  bool of_mlp;
  TensorRule rule;
};

constexpr Bias kBiases[] = {
    {"query", false, {WeightRole::kQueryBias, "layers.{i}.query.bias"}},
    {"key", false, {WeightRole::kKeyBias, "layers.{i}.key.bias"}},
    {"value", false, {WeightRole::kValueBias, "layers.{i}.value.bias"}},
    {"attention_out", false, {WeightRole::kAttentionOutBias, "layers.{i}.attention_out.bias"}},
    {"mlp_up", true, {WeightRole::kMlpUpBias, "layers.{i}.mlp_up.bias"}},
    {"mlp_down", true, {WeightRole::kMlpDownBias, "layers.{i}.mlp_down.bias"}},
    {"head", false, {WeightRole::kHeadBias, "head.bias"}},
};

// Gains, each with its bias, in front of attention, the MLP and the head.
constexpr TensorRule kAttentionNorm[] = {
    {WeightRole::kNorm1Gain, "layers.{i}.norm1.weight"},
    {WeightRole::kNorm1Bias, "layers.{i}.norm1.bias"},
    {WeightRole::kFinalNormGain, "final_norm.weight"},
    {WeightRole::kFinalNormBias, "final_norm.bias"},
};
constexpr TensorRule kMlpNorm[] = {
    {WeightRole::kNorm2Gain, "layers.{i}.norm2.weight"},
    {WeightRole::kNorm2Bias, "layers.{i}.norm2.bias"},
};

// A list of `count` numbers, or of any number of them up to `most` where count is 0.
std::vector<double> ReadNumbers(ConfigReader& config, absl::string_view key, int64_t count,
                                int64_t most) {
  const nlohmann::json& list = config.Raw(key);
  std::vector<double> numbers;
  const std::string allowed =
      count > 0
          ? absl::StrCat("must be a list of ", count, " numbers from ", -kLargest, " to ", kLargest)
          : absl::StrCat("must be a list of 1 to ", most, " numbers from ", -kLargest, " to ",
                         kLargest);
  const auto size = static_cast<int64_t>(list.is_array() ? list.size() : 0);
  if (size < 1 || size > most || (count > 0 && size != count)) {
    config.Wrong(key, allowed);
    return numbers;
  }
  for (const nlohmann::json& number : list) {
    const double value = number.is_number() ? number.get<double>() : NAN;
    if (!(std::abs(value) <= kLargest)) {
      config.Wrong(key, allowed);
      return {};
    }
    numbers.push_back(value);
  }
  return numbers;
}

void ReadPositions(ConfigReader& config, ModelDescription& model) {
  Architecture& arch = model.architecture;
  config.Require("positions");
  ConfigReader positions = config.Section("positions");
  const std::string type = positions.TextOr({"type"}, "");
  if (!config.ok()) return;
  if (type == "none") {
    positions.Allow({"type"});
    arch.position = PositionKind::kNone;
  } else if (type == "learned") {
    positions.Allow({"type", "count"});
    arch.position = PositionKind::kLearned;
    arch.n_positions = positions.Integer({"count"}, 1, kMaxPositions);
    model.Add(kPositions);
  } else if (type == "alibi") {
    positions.Allow({"type", "slopes"});
    arch.position = PositionKind::kAlibi;
    arch.alibi_slopes = ReadNumbers(positions, "slopes", arch.heads, arch.heads);
  } else if (type == "rotary_interleaved" || type == "rotary_half_split") {
    positions.Allow({"type", "angles"});
    arch.position = type == "rotary_interleaved" ? PositionKind::kRotaryInterleaved
                                                 : PositionKind::kRotaryHalfSplit;
    if (arch.d_head < 2) {
      positions.Wrong("type", "needs heads of 2 columns or more");
      return;
    }
    arch.rotary_angles = ReadNumbers(positions, "angles", 0, arch.d_head / 2);
    arch.rotary_dim = 2 * static_cast<int64_t>(arch.rotary_angles.size());
  } else {
    positions.Wrong("type",
                    "must be none, learned, alibi, rotary_interleaved or rotary_half_split");
  }
}

void ReadNorm(ConfigReader& config, ModelDescription& model) {
  Architecture& arch = model.architecture;
  config.Require("norm");
  const std::string norm = config.TextOr({"norm"}, "");
  arch.norm = NormKind::kNone;
  if (norm == "layer") {
    arch.norm = NormKind::kLayerNorm;
    arch.norm_epsilon = config.NumberOr({"norm_epsilon"}, 0, 1, 1e-5);
    model.Add(kAttentionNorm);
    if (arch.d_mlp > 0) model.Add(kMlpNorm);
  } else if (norm != "none") {
    config.Wrong("norm", "must be none or layer");
  } else if (config.Has("norm_epsilon")) {
    config.Wrong("norm_epsilon", "must be left out where norm is none");
  }
}

void ReadBiases(ConfigReader& config, ModelDescription& model) {
  const nlohmann::json& list = config.Raw("biases");
  if (list.is_null()) return;
  const auto refuse = [&config] {
    config.Wrong("biases",
                 absl::StrCat("must be a list of ",
                              absl::StrJoin(kBiases, ", ",
                                            [](std::string* out, const Bias& bias) {
                                              absl::StrAppend(out, bias.name);
                                            }),
                              ", each at most once, and those of the MLP only where there is one"));
  };
  if (!list.is_array()) return refuse();
  std::set<nlohmann::json> names(list.begin(), list.end());
  size_t known = 0;
  for (const Bias& bias : kBiases) {
    if (!names.contains(std::string(bias.name))) continue;
    if (bias.of_mlp && model.architecture.d_mlp == 0) return refuse();
    ++known;
    model.tensors.push_back(bias.rule);
  }
  if (known != list.size()) refuse();
}

void ReadAttentionScale(ConfigReader& config, Architecture& arch) {
  if (config.Raw("attention_scale").is_array()) {
    SetPlainAttention(arch, 1);
    arch.attention_scale = ReadNumbers(config, "attention_scale", arch.layers, arch.layers);
    return;
  }
  SetPlainAttention(arch, config.NumberOr({"attention_scale"}, -kLargest, kLargest,
                                          1 / std::sqrt(static_cast<double>(arch.d_head))));
}

}  // namespace

void ReadHopscope(ConfigReader& config, ModelDescription& model) {
  config.Allow({"model_type", "vocab_size", "layers", "heads", "kv_heads", "d_model", "d_head",
                "positions", "norm", "norm_epsilon", "residual", "mlp", "biases", "attention_scale",
                "tied_head", "bos_token_id", "eos_token_id", "pad_token_id"});
  Architecture& arch = model.architecture;
  arch.layers = config.Integer({"layers"}, 1, kMaxLayers);
  arch.heads = config.Integer({"heads"}, 1, kMaxHeads);
  arch.kv_heads = config.IntegerOr({"kv_heads"}, 1, kMaxHeads, arch.heads);
  if (arch.heads % arch.kv_heads != 0) {
    config.Wrong("kv_heads", absl::StrCat("must divide heads, ", arch.heads));
  }
  arch.d_model = config.Integer({"d_model"}, 1, kMaxWidth);
  arch.vocab_size = config.Integer({"vocab_size"}, 1, kMaxVocabulary);
  if (config.Has("d_head")) {
    arch.d_head = config.Integer({"d_head"}, 1, kMaxHeadWidth);
  } else {
    arch.d_head = arch.d_model / arch.heads;
    if (arch.d_model % arch.heads != 0 || arch.d_head > kMaxHeadWidth) {
      config.Wrong("d_model", absl::StrCat("must be a multiple of heads, ", arch.heads,
                                           ", unless d_head is given"));
    }
  }
  arch.block = BlockForm::kSequential;
  arch.residual = config.FlagOr({"residual"}, true);
  arch.tied_head = config.FlagOr({"tied_head"}, false);

  model.prefixes = {""};
  model.Add(kTensors);
  if (config.Has("mlp")) {
    ConfigReader mlp = config.Section("mlp");
    mlp.Allow({"width", "activation"});
    arch.d_mlp = mlp.Integer({"width"}, 1, kMaxMlpWidth);
    mlp.ReadActivation({"activation"}, "gelu_new", arch);
    model.Add(kMlp);
  }
  if (!config.ok()) return;
  ReadAttentionScale(config, arch);
  ReadPositions(config, model);
  ReadNorm(config, model);
  ReadBiases(config, model);
  if (!arch.tied_head) model.tensors.push_back({WeightRole::kHead, "head.weight"});
}

}  // namespace hopscope::checkpoint

#include "common/checkpoint/families/family.h"

#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/families/alibi.h"
#include "common/checkpoint/families/rope.h"
#include "common/checkpoint/testing/write_checkpoint.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hopscope::checkpoint {
namespace {

using nlohmann::json;
using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pointwise;

// A config of each family that is as short as it may be.
json Minimal(const std::string& family) {
  const json llama = {{"num_hidden_layers", 2},   {"num_attention_heads", 4},
                      {"num_key_value_heads", 2}, {"hidden_size", 48},
                      {"intermediate_size", 80},  {"vocab_size", 97}};
  json config;
  if (family == "gptj" || family == "gpt2") {
    config = {
        {"n_layer", 2}, {"n_head", 4}, {"n_embd", 48}, {"n_positions", 64}, {"vocab_size", 97}};
    if (family == "gptj") config["rotary_dim"] = 8;
  } else if (family == "gpt_neo") {
    config = {{"num_layers", 2},   {"num_heads", 4},
              {"hidden_size", 48}, {"max_position_embeddings", 64},
              {"vocab_size", 97},  {"attention_types", json::parse(R"([[["global","local"],1]])")}};
  } else if (family == "opt") {
    config = {{"num_hidden_layers", 2}, {"num_attention_heads", 4},
              {"hidden_size", 48},      {"ffn_dim", 80},
              {"vocab_size", 97},       {"max_position_embeddings", 64}};
  } else if (family == "bloom") {
    config = {{"n_layer", 2}, {"n_head", 4}, {"hidden_size", 48}, {"vocab_size", 97}};
  } else if (family == "mpt") {
    config = {{"n_layers", 2}, {"n_heads", 4}, {"d_model", 48}, {"vocab_size", 97}};
  } else if (family == "gpt_neox") {
    config = {{"num_hidden_layers", 2},
              {"num_attention_heads", 3},
              {"hidden_size", 48},
              {"intermediate_size", 80},
              {"vocab_size", 97}};
  } else if (family == "hopscope") {
    config = {
        {"layers", 2},     {"heads", 4},
        {"d_model", 48},   {"vocab_size", 97},
        {"norm", "layer"}, {"positions", {{"type", "rotary_half_split"}, {"angles", {1, 0.5}}}}};
  } else {
    config = llama;
    if (family == "gemma2") {
      config["head_dim"] = 16;
      config["attn_logit_softcapping"] = 50.0;
      config["final_logit_softcapping"] = nullptr;
    }
  }
  config["model_type"] = family;
  return config;
}

absl::StatusOr<Architecture> Describe(const json& config) {
  auto model = DescribeModel(config.dump());
  if (!model.ok()) return model.status();
  return model->architecture;
}

Architecture Must(const json& config) {
  const auto arch = Describe(config);
  EXPECT_TRUE(arch.ok()) << arch.status();
  return arch.value_or(Architecture());
}

Architecture Must(json config, const std::string& key, const json& value) {
  config[key] = value;
  return Must(config);
}

// "REASON FIELD" for which a config is refused once the key has the value.
std::string Refusal(json config, const std::string& key, const json& value) {
  config[key] = value;
  const auto arch = Describe(config);
  if (arch.ok()) return "";
  const auto info = common::GetErrorInfo(arch.status());
  EXPECT_TRUE(info.has_value());
  EXPECT_THAT(std::string(arch.status().message()), HasSubstr("config.json"));
  const auto field = info->metadata().find("field");
  return absl::StrCat(info->reason(), " ", field == info->metadata().end() ? "" : field->second);
}

class EveryFamilyTest : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryFamilyTest, ReadsAMinimalConfig) {
  const Architecture arch = Must(Minimal(GetParam()));
  EXPECT_EQ(arch.family, GetParam());
  EXPECT_EQ(arch.layers, 2);
  EXPECT_EQ(arch.d_model, 48);
  EXPECT_EQ(arch.attention_scale.size(), 2U);
  EXPECT_EQ(arch.attention_window.size(), 2U);
  if (arch.position == PositionKind::kRotaryInterleaved ||
      arch.position == PositionKind::kRotaryHalfSplit) {
    EXPECT_EQ(arch.rotary_angles.size(), static_cast<size_t>(arch.rotary_dim / 2));
    EXPECT_EQ(arch.rotary_angles[0], 1);
  }
  if (arch.position == PositionKind::kAlibi) {
    EXPECT_EQ(arch.alibi_slopes.size(), static_cast<size_t>(arch.heads));
  }
}

TEST_P(EveryFamilyTest, NeedsEachOfItsKeys) {
  const json config = Minimal(GetParam());
  for (const auto& [key, value] : config.items()) {
    // What has a default, or a value that only some of the family's models need.
    if (key == "attn_logit_softcapping" || key == "final_logit_softcapping") continue;
    if (GetParam() == "llama" && key == "num_key_value_heads") continue;
    json without = config;
    without.erase(key);
    EXPECT_FALSE(Describe(without).ok()) << key;
  }
}

TEST_P(EveryFamilyTest, RefusesHostileValuesOfEveryKey) {
  const json hostile[] = {
      0,          -1,        1.5,  "3", json::array(), json::object(), true, int64_t{1} << 40,
      UINT64_MAX, INT64_MIN, 1e300};
  const json config = Minimal(GetParam());
  for (const auto& [key, value] : config.items()) {
    for (const json& bad : hostile) {
      if (absl::StrContains(key, "softcapping") && (bad == 1.5 || bad == 1e300)) continue;
      EXPECT_NE(Refusal(config, key, bad), "") << key << " " << bad;
    }
  }
}

TEST_P(EveryFamilyTest, NamesAllItsTensors) {
  const auto model = DescribeModel(Minimal(GetParam()).dump());
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_FALSE(model->tensors.empty());
  EXPECT_EQ(model->tensors[0].role, WeightRole::kTokenEmbedding);
  for (const TensorRule& rule : model->tensors) {
    EXPECT_GT(ShapeOf(rule.role, model->architecture).rows, 0) << rule.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryFamilyTest, ::testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const Family& family : Families()) {
                             names.emplace_back(family.model_type);
                           }
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

TEST(Families, AreListedInTheOrderOfTheirNames) {
  std::string last;
  for (const Family& family : Families()) {
    EXPECT_LT(last, std::string(family.model_type));
    last = std::string(family.model_type);
  }
}

TEST(DescribeModel, NamesTheFamiliesThatItKnows) {
  const auto model = DescribeModel(R"({"model_type":"mamba"})");
  EXPECT_EQ(common::ErrorReason(model.status()), "CHECKPOINT_UNSUPPORTED_FAMILY");
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("'mamba'"));
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("gptj"));
}

TEST(DescribeModel, TakesTheNamesThatASettingHasHad) {
  json config = Minimal("gptj");
  config.erase("n_layer");
  config["num_hidden_layers"] = 2;
  EXPECT_EQ(Must(config).layers, 2);
  config["n_layer"] = 2;
  EXPECT_EQ(Must(config).layers, 2);
  config["n_layer"] = nullptr;
  EXPECT_EQ(Must(config).layers, 2);
  EXPECT_EQ(Refusal(config, "n_layer", 3), "CHECKPOINT_CONFIG num_hidden_layers");
}

TEST(DescribeModel, CollectsSpecialTokensOfTheVocabulary) {
  json config = Minimal("llama");
  config["bos_token_id"] = 5;
  config["eos_token_id"] = {7, 5, 128001};
  config["pad_token_id"] = -1;
  EXPECT_THAT(Must(config).special_tokens, ElementsAre(5, 7));
  EXPECT_THAT(Must(Minimal("llama")).special_tokens, IsEmpty());
}

TEST(DescribeModel, RefusesSizesThatDoNotDivide) {
  EXPECT_EQ(Refusal(Minimal("gptj"), "n_head", 5), "CHECKPOINT_CONFIG n_embd");
  EXPECT_EQ(Refusal(Minimal("llama"), "num_attention_heads", 5),
            "CHECKPOINT_CONFIG num_key_value_heads");
  EXPECT_EQ(Refusal(Minimal("llama"), "hidden_size", 50), "CHECKPOINT_CONFIG hidden_size");
}

TEST(DescribeModel, RefusesQuantizedWeights) {
  EXPECT_EQ(Refusal(Minimal("llama"), "quantization_config", {{"quant_method", "gptq"}}),
            "CHECKPOINT_UNSUPPORTED_OPTION quantization_config");
}

TEST(DescribeModel, TakesManySpecialTokensInItsStride) {
  json config = Minimal("llama");
  config["vocab_size"] = 1 << 24;
  for (int id = 0; id < 200'000; ++id) config["eos_token_id"].push_back(id);
  EXPECT_EQ(Must(config).special_tokens.size(), 200'000U);
}

TEST(DescribeModel, RefusesUnknownActivations) {
  EXPECT_EQ(Refusal(Minimal("gptj"), "activation_function", "gelu_10"),
            "CHECKPOINT_UNSUPPORTED_OPTION activation_function");
  EXPECT_EQ(Refusal(Minimal("llama"), "hidden_act", "quick_gelu"),
            "CHECKPOINT_UNSUPPORTED_OPTION hidden_act");
  EXPECT_EQ(Must(Minimal("gpt_neox")).activation, Activation::kGeluErf);
  EXPECT_EQ(Must(Minimal("gpt_neox"), "hidden_act", "gelu_new").activation, Activation::kGeluTanh);
  EXPECT_EQ(Must(Minimal("gpt_neox"), "hidden_act", "relu").activation, Activation::kRelu);
}

TEST(GptJ, HasTheStructureOfItsFamily) {
  const Architecture arch = Must(Minimal("gptj"));
  EXPECT_EQ(arch.position, PositionKind::kRotaryInterleaved);
  EXPECT_EQ(arch.rotary_dim, 8);
  EXPECT_THAT(arch.rotary_angles, ElementsAre(1, DoubleEq(0.1), DoubleEq(0.01), DoubleEq(0.001)));
  EXPECT_EQ(arch.block, BlockForm::kParallelSharedNorm);
  EXPECT_EQ(arch.activation, Activation::kGeluTanh);
  EXPECT_EQ(arch.d_mlp, 4 * 48);
  EXPECT_FALSE(arch.tied_head);
  EXPECT_THAT(arch.attention_scale, Each(DoubleEq(1 / std::sqrt(12.0))));
  EXPECT_EQ(Must(Minimal("gptj"), "n_inner", 100).d_mlp, 100);
}

TEST(GptJ, RefusesRotationsThatDoNotFit) {
  EXPECT_EQ(Refusal(Minimal("gptj"), "rotary_dim", 7), "CHECKPOINT_CONFIG rotary_dim");
  EXPECT_EQ(Refusal(Minimal("gptj"), "rotary_dim", 14), "CHECKPOINT_CONFIG rotary_dim");
  EXPECT_EQ(Refusal(Minimal("gptj"), "rotary", false), "CHECKPOINT_UNSUPPORTED_OPTION rotary");
  EXPECT_EQ(Refusal(Minimal("gptj"), "rope_scaling", json::object()),
            "CHECKPOINT_UNSUPPORTED_OPTION rope_scaling");
}

TEST(Gpt2, ScalesByLayerWhereTheConfigSaysSo) {
  json config = Minimal("gpt2");
  EXPECT_EQ(Must(config).position, PositionKind::kLearned);
  EXPECT_TRUE(Must(config).tied_head);
  config["scale_attn_by_inverse_layer_idx"] = true;
  EXPECT_THAT(Must(config).attention_scale,
              ElementsAre(DoubleEq(1 / std::sqrt(12.0)), DoubleEq(0.5 / std::sqrt(12.0))));
  config["scale_attn_weights"] = false;
  EXPECT_THAT(Must(config).attention_scale, ElementsAre(1, 0.5));
  EXPECT_EQ(Refusal(config, "add_cross_attention", true),
            "CHECKPOINT_UNSUPPORTED_OPTION add_cross_attention");
}

TEST(GptNeo, HasWindowsAndNoScale) {
  const Architecture arch = Must(Minimal("gpt_neo"));
  EXPECT_THAT(arch.attention_scale, Each(1));
  EXPECT_THAT(arch.attention_window, ElementsAre(0, 256));
  json config = Minimal("gpt_neo");
  config.erase("attention_types");
  config["attention_layers"] = {"local", "local"};
  config["window_size"] = 9;
  EXPECT_THAT(Must(config).attention_window, ElementsAre(9, 9));
}

TEST(GptNeo, RefusesListsOfKindsThatDoNotFit) {
  const json config = Minimal("gpt_neo");
  for (const char* types :
       {R"([[["global"],1]])", R"([[["global"],1000000000]])", R"([[[],18446744073709551615]])",
        R"([[["global"],-2]])", R"([["global",2]])", R"([[[1,2],1]])", "[1]", "[]"}) {
    EXPECT_EQ(Refusal(config, "attention_types", json::parse(types)),
              "CHECKPOINT_CONFIG attention_types")
        << types;
  }
  EXPECT_EQ(Refusal(config, "attention_types", json::parse(R"([[["global","sparse"],1]])")),
            "CHECKPOINT_UNSUPPORTED_OPTION attention_types");
  EXPECT_EQ(Refusal(config, "attention_layers", {"local", "global"}),
            "CHECKPOINT_CONFIG attention_layers");
}

TEST(Opt, RefusesOpt350m) {
  EXPECT_EQ(Must(Minimal("opt")).learned_offset, 2);
  EXPECT_EQ(Refusal(Minimal("opt"), "do_layer_norm_before", false),
            "CHECKPOINT_UNSUPPORTED_OPTION do_layer_norm_before");
  EXPECT_EQ(Refusal(Minimal("opt"), "word_embed_proj_dim", 24),
            "CHECKPOINT_UNSUPPORTED_OPTION word_embed_proj_dim");
}

TEST(Opt, LeavesBiasesOutWhereTheConfigDoes) {
  json config = Minimal("opt");
  config["enable_bias"] = false;
  const auto model = DescribeModel(config.dump());
  ASSERT_TRUE(model.ok());
  for (const TensorRule& rule : model->tensors) EXPECT_NE(rule.role, WeightRole::kQueryBias);
}

TEST(Bloom, HasItsOwnGelu) {
  const Architecture arch = Must(Minimal("bloom"));
  EXPECT_EQ(arch.gelu_tanh_factor, 0.79788456);
  EXPECT_DOUBLE_EQ(Must(Minimal("gptj")).gelu_tanh_factor, std::sqrt(2 / std::acos(-1.0)));
  EXPECT_TRUE(arch.embedding_norm);
  EXPECT_EQ(arch.n_positions, 0);
  EXPECT_EQ(Must(Minimal("bloom"), "seq_length", 2048).n_positions, 2048);
  EXPECT_EQ(Refusal(Minimal("bloom"), "apply_residual_connection_post_layernorm", true),
            "CHECKPOINT_UNSUPPORTED_OPTION apply_residual_connection_post_layernorm");
}

TEST(Mpt, RefusesOptionsThatChangeAttention) {
  const auto refusal = [](const std::string& key, const json& value) {
    return Refusal(Minimal("mpt"), "attn_config", json{{key, value}});
  };
  EXPECT_EQ(refusal("qk_ln", true), "CHECKPOINT_UNSUPPORTED_OPTION attn_config.qk_ln");
  EXPECT_EQ(refusal("alibi", false), "CHECKPOINT_UNSUPPORTED_OPTION attn_config.alibi");
  EXPECT_EQ(refusal("clip_qkv", 6), "CHECKPOINT_UNSUPPORTED_OPTION attn_config.clip_qkv");
  EXPECT_EQ(refusal("attn_type", "grouped_query_attention"),
            "CHECKPOINT_UNSUPPORTED_OPTION attn_config.attn_type");
  EXPECT_EQ(refusal("alibi_bias_max", "8"), "CHECKPOINT_CONFIG attn_config.alibi_bias_max");
  EXPECT_EQ(refusal("qk_ln", false), "");
  EXPECT_THAT(Must(Minimal("mpt"), "attn_config", {{"softmax_scale", 0.25}}).attention_scale,
              Each(0.25));
}

TEST(GptNeoX, RotatesAShareOfEachHead) {
  json config = Minimal("gpt_neox");
  EXPECT_EQ(Must(config).rotary_dim, 4);
  EXPECT_EQ(Must(config).block, BlockForm::kParallelTwoNorms);
  EXPECT_EQ(Must(config, "use_parallel_residual", false).block, BlockForm::kSequential);
  EXPECT_EQ(Must(config, "rotary_pct", 1).rotary_dim, 16);
  EXPECT_EQ(Must(config, "rope_parameters", {{"partial_rotary_factor", 0.5}}).rotary_dim, 8);
  EXPECT_EQ(Refusal(config, "rotary_pct", 0.1), "CHECKPOINT_CONFIG rotary_pct");
  EXPECT_EQ(Refusal(config, "rotary_pct", 1.5), "CHECKPOINT_CONFIG rotary_pct");
  EXPECT_THAT(Must(config, "rotary_emb_base", 100).rotary_angles, ElementsAre(1, DoubleEq(0.1)));
}

TEST(Llama, ReadsRotaryScalingOfEitherStyle) {
  const json config = Minimal("llama");
  const json scaling = {{"factor", 2.0}, {"rope_type", "linear"}};
  const auto plain = Must(config).rotary_angles;
  const auto scaled = Must(config, "rope_scaling", scaling).rotary_angles;
  for (size_t t = 0; t < plain.size(); ++t) EXPECT_EQ(scaled[t], plain[t] / 2);
  EXPECT_EQ(Must(config, "rope_parameters", scaling).rotary_angles, scaled);
  EXPECT_EQ(Must(config, "rope_scaling", {{"factor", 2.0}, {"type", "linear"}}).rotary_angles,
            scaled);
  EXPECT_THAT(Must(config, "rope_theta", 500000.0).rotary_angles[1],
              DoubleEq(std::pow(500000.0, -2.0 / 12)));
}

TEST(Llama, SettingsOutsideTheRopeSectionCountToo) {
  json config = Minimal("llama");
  config["rope_parameters"] = {{"rope_type", "default"}};
  const auto plain = Must(config).rotary_angles;
  EXPECT_NE(Must(config, "rope_theta", 500000.0).rotary_angles, plain);
  config["rope_parameters"]["rope_theta"] = 500000.0;
  EXPECT_EQ(Must(config, "rope_theta", 500000.0).rotary_angles, Must(config).rotary_angles);
  EXPECT_EQ(Refusal(config, "rope_theta", 10000.0), "CHECKPOINT_CONFIG rope_theta");
  EXPECT_EQ(Refusal(config, "rope_scaling", {{"type", "default"}}),
            "CHECKPOINT_CONFIG rope_scaling");
}

TEST(Llama, RefusesRotationsThatAreNotImplemented) {
  const json config = Minimal("llama");
  const auto refusal = [&](const json& scaling) {
    return Refusal(config, "rope_scaling", scaling);
  };
  for (const char* type : {"yarn", "dynamic", "longrope", "nonsense"}) {
    EXPECT_EQ(refusal({{"rope_type", type}, {"factor", 2}}),
              "CHECKPOINT_UNSUPPORTED_OPTION rope_scaling.rope_type");
  }
  EXPECT_EQ(refusal({{"type", "linear"}}), "CHECKPOINT_CONFIG rope_scaling.factor");
  EXPECT_EQ(refusal({{"type", "linear"}, {"factor", 0}}), "CHECKPOINT_CONFIG rope_scaling.factor");
  EXPECT_EQ(refusal({{"type", "llama3"},
                     {"factor", 8},
                     {"low_freq_factor", 4},
                     {"high_freq_factor", 4},
                     {"original_max_position_embeddings", 32}}),
            "CHECKPOINT_CONFIG rope_scaling.high_freq_factor");
  EXPECT_EQ(refusal("linear"), "CHECKPOINT_CONFIG rope_scaling");
  EXPECT_EQ(Refusal(config, "partial_rotary_factor", 0.5),
            "CHECKPOINT_UNSUPPORTED_OPTION partial_rotary_factor");
  EXPECT_EQ(Refusal(config, "rope_theta", 0), "CHECKPOINT_CONFIG rope_theta");
  EXPECT_EQ(Refusal(config, "mlp_bias", true), "CHECKPOINT_UNSUPPORTED_OPTION mlp_bias");
}

TEST(Mistral, EveryLayerSlides) {
  EXPECT_THAT(Must(Minimal("mistral")).attention_window, Each(4096));
  EXPECT_THAT(Must(Minimal("mistral"), "sliding_window", 8).attention_window, Each(8));
  EXPECT_THAT(Must(Minimal("mistral"), "sliding_window", nullptr).attention_window, Each(0));
}

TEST(Qwen2, SlidesInTheLaterLayersIfAtAll) {
  json config = Minimal("qwen2");
  config["sliding_window"] = 16;
  config["max_window_layers"] = 1;
  EXPECT_THAT(Must(config).attention_window, Each(0));
  config["use_sliding_window"] = true;
  EXPECT_THAT(Must(config).attention_window, ElementsAre(0, 16));
  config["layer_types"] = {"sliding_attention", "full_attention"};
  EXPECT_THAT(Must(config).attention_window, ElementsAre(16, 0));
  EXPECT_EQ(Refusal(config, "layer_types", {"full_attention"}), "CHECKPOINT_CONFIG layer_types");
  EXPECT_EQ(Refusal(config, "layer_types", {"full_attention", "chunked_attention"}),
            "CHECKPOINT_UNSUPPORTED_OPTION layer_types");
  config["use_sliding_window"] = false;
  EXPECT_EQ(Refusal(config, "sliding_window", nullptr), "CHECKPOINT_CONFIG sliding_window");
}

TEST(Gemma2, HasItsCapsAndScales) {
  json config = Minimal("gemma2");
  config["query_pre_attn_scalar"] = 24;
  config["sliding_window"] = 8;
  const Architecture arch = Must(config);
  EXPECT_EQ(arch.block, BlockForm::kSandwich);
  EXPECT_EQ(arch.attention_softcap, 50);
  EXPECT_EQ(arch.logit_softcap, 0);
  EXPECT_EQ(arch.norm_gain_offset, 1);
  EXPECT_EQ(arch.activation, Activation::kGeluTanh);
  EXPECT_DOUBLE_EQ(arch.embedding_scale, std::sqrt(48.0));
  EXPECT_THAT(arch.attention_scale, Each(DoubleEq(1 / std::sqrt(24.0))));
  EXPECT_THAT(arch.attention_window, ElementsAre(8, 0));
}

TEST(Hopscope, HasNothingThatItsConfigDoesNotSay) {
  const Architecture plain = Must(Minimal("hopscope"));
  EXPECT_EQ(plain.position, PositionKind::kRotaryHalfSplit);
  EXPECT_EQ(plain.rotary_dim, 4);
  EXPECT_THAT(plain.rotary_angles, ElementsAre(1, 0.5));
  EXPECT_EQ(plain.d_mlp, 0);
  EXPECT_EQ(plain.norm, NormKind::kLayerNorm);
  EXPECT_TRUE(plain.residual);
  EXPECT_FALSE(plain.tied_head);
  EXPECT_THAT(plain.attention_scale, Each(DoubleEq(1 / std::sqrt(12.0))));
  const auto model = DescribeModel(Minimal("hopscope").dump());
  ASSERT_TRUE(model.ok());
  for (const TensorRule& rule : model->tensors) {
    EXPECT_NE(rule.role, WeightRole::kMlpUp);
    EXPECT_NE(rule.role, WeightRole::kNorm2Gain);
    EXPECT_NE(rule.role, WeightRole::kQueryBias);
  }
}

TEST(Hopscope, TurnsEachPartOnAndOff) {
  const json config = Minimal("hopscope");
  EXPECT_FALSE(Must(config, "residual", false).residual);
  EXPECT_EQ(Must(config, "norm", "none").norm, NormKind::kNone);
  EXPECT_EQ(Must(config, "norm_epsilon", 1e-3).norm_epsilon, 1e-3);
  EXPECT_TRUE(Must(config, "tied_head", true).tied_head);
  EXPECT_EQ(Must(config, "kv_heads", 2).kv_heads, 2);
  EXPECT_EQ(Must(config, "d_head", 7).d_head, 7);
  EXPECT_THAT(Must(config, "attention_scale", 1600).attention_scale, ElementsAre(1600, 1600));
  EXPECT_THAT(Must(config, "attention_scale", {3, -0.5}).attention_scale, ElementsAre(3, -0.5));
  const Architecture mlp = Must(config, "mlp", {{"width", 30}, {"activation", "relu"}});
  EXPECT_EQ(mlp.d_mlp, 30);
  EXPECT_EQ(mlp.activation, Activation::kRelu);
  EXPECT_EQ(Must(config, "positions", {{"type", "none"}}).position, PositionKind::kNone);
  EXPECT_EQ(Must(config, "positions", {{"type", "learned"}, {"count", 50}}).n_positions, 50);
  EXPECT_THAT(
      Must(config, "positions", {{"type", "alibi"}, {"slopes", {1, 0, -2, 0.25}}}).alibi_slopes,
      ElementsAre(1, 0, -2, 0.25));
  EXPECT_EQ(Must(config, "positions", {{"type", "rotary_interleaved"}, {"angles", {0.8}}}).position,
            PositionKind::kRotaryInterleaved);
}

TEST(Hopscope, ListsTheBiasesThatThereAre) {
  json config = Minimal("hopscope");
  config["biases"] = {"value", "head"};
  const auto model = DescribeModel(config.dump());
  ASSERT_TRUE(model.ok()) << model.status();
  int biases = 0;
  for (const TensorRule& rule : model->tensors) {
    biases += rule.role == WeightRole::kValueBias || rule.role == WeightRole::kHeadBias;
    EXPECT_NE(rule.role, WeightRole::kKeyBias);
  }
  EXPECT_EQ(biases, 2);
  for (const json& wrong : {json{"mlp_up"}, json{"nonsense"}, json{"key", "key"}, json{1}}) {
    EXPECT_EQ(Refusal(config, "biases", wrong), "CHECKPOINT_CONFIG biases") << wrong;
  }
}

TEST(Hopscope, RefusesWhatHasNoMeaning) {
  const json config = Minimal("hopscope");
  EXPECT_EQ(Refusal(config, "dropout", 0.1), "CHECKPOINT_UNSUPPORTED_OPTION dropout");
  EXPECT_EQ(Refusal(config, "mlp", {{"width", 4}, {"gated", true}}),
            "CHECKPOINT_UNSUPPORTED_OPTION mlp.gated");
  EXPECT_EQ(Refusal(config, "positions", {{"type", "none"}, {"angles", {1}}}),
            "CHECKPOINT_UNSUPPORTED_OPTION positions.angles");
  EXPECT_EQ(Refusal(config, "positions", {{"type", "sinusoidal"}}),
            "CHECKPOINT_CONFIG positions.type");
  EXPECT_EQ(Refusal(config, "positions", {{"type", "alibi"}, {"slopes", {1, 2}}}),
            "CHECKPOINT_CONFIG positions.slopes");
  EXPECT_EQ(Refusal(config, "positions",
                    {{"type", "rotary_half_split"}, {"angles", {1, 2, 3, 4, 5, 6, 7}}}),
            "CHECKPOINT_CONFIG positions.angles");
  EXPECT_EQ(Refusal(config, "positions", {{"type", "rotary_half_split"}, {"angles", {"1"}}}),
            "CHECKPOINT_CONFIG positions.angles");
  EXPECT_EQ(Refusal(config, "attention_scale", {1, 2, 3}), "CHECKPOINT_CONFIG attention_scale");
  EXPECT_EQ(Refusal(config, "norm", "rms"), "CHECKPOINT_CONFIG norm");
  json without = config;
  without["norm"] = "none";
  EXPECT_EQ(Refusal(without, "norm_epsilon", 1e-5), "CHECKPOINT_CONFIG norm_epsilon");
  EXPECT_EQ(Refusal(config, "kv_heads", 3), "CHECKPOINT_CONFIG kv_heads");
}

// Settings of relatives of the families: each would make it another model.
TEST(DescribeModel, RefusesSettingsOfOtherModels) {
  const struct {
    const char* family;
    const char* key;
    json value;
  } cases[] = {
      {"llama", "qk_norm", true},
      {"qwen2", "use_qk_norm", true},
      {"gpt_neox", "qk_layernorm", true},
      {"mpt", "qk_ln", true},
      {"llama", "clip_qkv", 8},
      {"mistral", "num_local_experts", 8},
      {"qwen2", "num_experts", 60},
      {"llama", "embedding_multiplier", 12.0},
      {"llama", "residual_multiplier", 0.22},
      {"llama", "attention_multiplier", 0.0078},
      {"llama", "logits_scaling", 8.0},
      {"llama", "logit_scale", 0.0625},
      {"llama", "no_rope_layers", {0, 1}},
      {"llama", "attention_chunk_size", 8192},
      {"llama", "sliding_window", 4096},
      {"gpt_neox", "layer_types", {"sliding_attention", "full_attention"}},
      {"llama", "attn_logit_softcapping", 50.0},
      {"qwen2", "final_logit_softcapping", 30.0},
      {"llama", "query_pre_attn_scalar", 256},
      {"gpt2", "rope_scaling", {{"type", "linear"}, {"factor", 2}}},
      {"bloom", "rope_parameters", {{"rope_theta", 10000}}},
      {"gpt2", "is_encoder_decoder", true},
      {"opt", "position_embedding_type", "relative_key"},
      {"bloom", "position_embedding_type", "rope"},
      {"gptj", "alibi", true},
      {"gemma2", "use_bidirectional_attention", true},
      {"llama", "mlp_bias", true},
      {"qwen2", "use_mrope", true},
      {"opt", "layer_norm_elementwise_affine", false},
      {"opt", "_remove_final_layer_norm", true},
      {"mpt", "no_bias", false},
      {"mpt", "norm_type", "rmsnorm"},
      {"bloom", "n_inner", 100},
  };
  for (const auto& test_case : cases) {
    EXPECT_EQ(Refusal(Minimal(test_case.family), test_case.key, test_case.value),
              absl::StrCat("CHECKPOINT_UNSUPPORTED_OPTION ", test_case.key))
        << test_case.family << " " << test_case.key;
    EXPECT_EQ(Refusal(Minimal(test_case.family), test_case.key, nullptr), "")
        << test_case.family << " " << test_case.key;
  }
}

TEST(DescribeModel, TakesSettingsOfOtherModelsThatChangeNothing) {
  EXPECT_EQ(Refusal(Minimal("llama"), "qk_norm", false), "");
  EXPECT_EQ(Refusal(Minimal("llama"), "residual_multiplier", 1.0), "");
  EXPECT_EQ(Refusal(Minimal("llama"), "layer_types", {"full_attention", "full_attention"}), "");
  EXPECT_EQ(Refusal(Minimal("gpt2"), "position_embedding_type", "absolute"), "");
  EXPECT_EQ(Refusal(Minimal("gptj"), "position_embedding_type", "rotary"), "");
}

TEST(DescribeModel, RefusesUnknownSettingsOfRotaryPositions) {
  const json config = Minimal("llama");
  EXPECT_EQ(Refusal(config, "rope_parameters",
                    {{"rope_type", "default"}, {"mrope_section", {16, 24, 24}}}),
            "CHECKPOINT_UNSUPPORTED_OPTION rope_parameters.mrope_section");
  EXPECT_EQ(Refusal(config, "rope_parameters",
                    {{"full_attention", {{"rope_theta", 1e6}}},
                     {"sliding_attention", {{"rope_theta", 1e4}}}}),
            "CHECKPOINT_UNSUPPORTED_OPTION rope_parameters.full_attention");
  EXPECT_EQ(Refusal(config, "rope_scaling",
                    {{"type", "linear"}, {"factor", 2}, {"attention_factor", 1.2}}),
            "CHECKPOINT_UNSUPPORTED_OPTION rope_scaling.attention_factor");
}

TEST(DescribeModel, KnowsTheDigitsOfEachGelu) {
  const json config = Minimal("gptj");
  EXPECT_EQ(Must(config, "activation_function", "gelu_fast").gelu_tanh_factor, 0.7978845608);
  EXPECT_DOUBLE_EQ(Must(config, "activation_function", "gelu_new").gelu_tanh_factor,
                   std::sqrt(2 / std::acos(-1.0)));
}

TEST(ScaleAngles, StretchesLowFrequenciesAlone) {
  // As in Llama 3.1, with a short first context; from an independent computation of transformers'
  // formula.
  std::vector<double> angles = RotaryAngles(16, 10000);
  ScaleAngles({.factor = 8, .low_factor = 1, .high_factor = 4, .context = 32}, angles);
  const std::vector<double> expected = {
      1.0,     0.09583998588296266,    0.0125,   0.003952847075210474,
      0.00125, 0.00039528470752104737, 0.000125, 3.952847075210474e-05};
  EXPECT_THAT(angles, Pointwise(DoubleNear(1e-15), expected));
}

TEST(Slopes, BloomAppendsOddPowers) {
  EXPECT_THAT(BloomSlopes(4), ElementsAre(0.25, 0.0625, 0.015625, 0.00390625));
  EXPECT_THAT(BloomSlopes(6), ElementsAre(0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125));
  EXPECT_THAT(BloomSlopes(1), ElementsAre(1.0 / 256));
}

TEST(Slopes, MptTakesEvenThenOdd) {
  EXPECT_THAT(MptSlopes(4, 8), ElementsAre(0.25, 0.0625, 0.015625, 0.00390625));
  EXPECT_THAT(MptSlopes(6, 8), ElementsAre(0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125));
  EXPECT_THAT(MptSlopes(3, 8), ElementsAre(0.0625, 0.00390625, 0.25));
  EXPECT_THAT(MptSlopes(2, 4), ElementsAre(0.25, 0.0625));
}

}  // namespace
}  // namespace hopscope::checkpoint

// Input: the text of a config.json.
#include <cmath>
#include <cstdint>
#include <string>

#include "common/checkpoint/cost.h"
#include "common/checkpoint/families/family.h"
#include "common/status.h"
#include "tests/fuzz/require.h"

namespace hc = hopscope::checkpoint;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto model =
      hc::DescribeModel(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!model.ok()) {
    HOPSCOPE_REQUIRE(hopscope::common::GetErrorInfo(model.status()).has_value());
    HOPSCOPE_REQUIRE(model.status().message().size() < 2000);
    return 0;
  }
  const hc::Architecture& arch = model->architecture;
  HOPSCOPE_REQUIRE(arch.layers >= 1 && arch.layers <= hc::kMaxLayers);
  HOPSCOPE_REQUIRE(arch.heads >= 1 && arch.heads <= hc::kMaxHeads);
  HOPSCOPE_REQUIRE(arch.kv_heads >= 1 && arch.heads % arch.kv_heads == 0);
  HOPSCOPE_REQUIRE(arch.d_model >= 1 && arch.d_model <= hc::kMaxWidth);
  HOPSCOPE_REQUIRE(arch.d_head >= 1 && arch.d_head <= hc::kMaxHeadWidth);
  HOPSCOPE_REQUIRE(arch.d_mlp >= 1 && arch.d_mlp <= hc::kMaxMlpWidth);
  HOPSCOPE_REQUIRE(arch.vocab_size >= 1 && arch.vocab_size <= hc::kMaxVocabulary);
  HOPSCOPE_REQUIRE(arch.n_positions >= 0 && arch.n_positions <= hc::kMaxPositions);
  HOPSCOPE_REQUIRE(arch.norm_epsilon >= 0 && arch.norm_epsilon <= 1);
  const auto layers = static_cast<size_t>(arch.layers);
  HOPSCOPE_REQUIRE(arch.attention_scale.size() == layers);
  HOPSCOPE_REQUIRE(arch.attention_window.size() == layers);
  for (const double scale : arch.attention_scale) HOPSCOPE_REQUIRE(std::isfinite(scale));
  for (const int64_t window : arch.attention_window) HOPSCOPE_REQUIRE(window >= 0);
  HOPSCOPE_REQUIRE(arch.rotary_dim % 2 == 0 && arch.rotary_dim <= arch.d_head);
  HOPSCOPE_REQUIRE(arch.rotary_angles.size() == static_cast<size_t>(arch.rotary_dim / 2));
  for (const double angle : arch.rotary_angles) HOPSCOPE_REQUIRE(std::isfinite(angle));
  const bool alibi = arch.position == hc::PositionKind::kAlibi;
  HOPSCOPE_REQUIRE(arch.alibi_slopes.size() == (alibi ? static_cast<size_t>(arch.heads) : 0));
  for (const double slope : arch.alibi_slopes) HOPSCOPE_REQUIRE(std::isfinite(slope));
  for (const int64_t token : arch.special_tokens) {
    HOPSCOPE_REQUIRE(token >= 0 && token < arch.vocab_size);
  }
  for (const hc::TensorRule& rule : model->tensors) {
    HOPSCOPE_REQUIRE(hc::ShapeOf(rule.role, arch).rows > 0);
  }
  HOPSCOPE_REQUIRE(std::isfinite(hc::ForwardFlops(arch, 4096, hc::Outputs::kEveryPosition)));
  HOPSCOPE_REQUIRE(hc::WeightBytes(arch, 8) > 0);
  return 0;
}

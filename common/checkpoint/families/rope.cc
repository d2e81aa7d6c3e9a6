#include "common/checkpoint/families/rope.h"

#include <cmath>
#include <string>

namespace hopscope::checkpoint {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kLargestBase = 1e15;
constexpr double kLargestFactor = 1e6;

// A setting that may stand in the section or at the top level; where it stands in both, they agree.
double NumberOfEither(ConfigReader& section, ConfigReader& config, ConfigReader::Keys keys,
                      double min, double max, double fallback) {
  constexpr double kAbsent = -1;  // none of these settings can be negative
  const double inner = section.NumberOr(keys, min, max, kAbsent);
  const double outer = config.NumberOr(keys, min, max, kAbsent);
  if (inner == kAbsent) return outer == kAbsent ? fallback : outer;
  if (outer != kAbsent && outer != inner) {
    for (const absl::string_view key : keys) {
      if (config.Has(key)) config.Wrong(key, "must agree with the section for rotary positions");
    }
  }
  return inner;
}

}  // namespace

std::vector<double> RotaryAngles(int64_t rotary_dim, double base) {
  std::vector<double> angles;
  angles.reserve(static_cast<size_t>(rotary_dim / 2));
  for (int64_t t = 0; t < rotary_dim / 2; ++t) {
    angles.push_back(
        std::pow(base, -2.0 * static_cast<double>(t) / static_cast<double>(rotary_dim)));
  }
  return angles;
}

void ScaleAngles(const Llama3Scaling& scaling, std::vector<double>& angles) {
  for (double& theta : angles) {
    const double turns = scaling.context * theta / (2 * kPi);  // within the first context
    if (turns > scaling.high_factor) continue;
    if (turns < scaling.low_factor) {
      theta /= scaling.factor;
    } else {
      const double share =
          (turns - scaling.low_factor) / (scaling.high_factor - scaling.low_factor);
      theta = (1 - share) * theta / scaling.factor + share * theta;
    }
  }
}

void ReadHalfSplitRope(ConfigReader& config, double default_share, Architecture& arch) {
  const bool is_v5 = config.Has("rope_parameters");
  if (is_v5 && config.Has("rope_scaling")) {
    config.Wrong("rope_scaling", "must not stand beside rope_parameters");
  }
  ConfigReader rope = config.Section(is_v5 ? "rope_parameters" : "rope_scaling");
  const double base =
      NumberOfEither(rope, config, {"rope_theta", "rotary_emb_base"}, 1, kLargestBase, 10000);
  const double share =
      NumberOfEither(rope, config, {"partial_rotary_factor", "rotary_pct"}, 0, 1, default_share);
  arch.position = PositionKind::kRotaryHalfSplit;
  arch.rotary_dim = static_cast<int64_t>(static_cast<double>(arch.d_head) * share);
  if (arch.rotary_dim < 2 || arch.rotary_dim % 2 != 0) {
    config.Wrong(is_v5 ? "rope_parameters" : "rotary_pct",
                 "must make an even number of columns rotate, at least 2 (share times width of a "
                 "head, rounded down)");
  }
  if (!config.ok()) return;
  arch.rotary_angles = RotaryAngles(arch.rotary_dim, base);

  const std::string type = rope.TextOr({"rope_type", "type"}, "default");
  if (type == "default" || type == "linear" || type == "llama3") {
    rope.Allow({"rope_type", "type", "rope_theta", "rotary_emb_base", "partial_rotary_factor",
                "rotary_pct", "factor", "low_freq_factor", "high_freq_factor",
                "original_max_position_embeddings"});
  }
  if (type == "default") return;
  if (type == "linear") {
    const double factor = rope.Number({"factor"}, 1, kLargestFactor);
    for (double& theta : arch.rotary_angles) theta /= factor;
  } else if (type == "llama3") {
    Llama3Scaling scaling;
    scaling.factor = rope.Number({"factor"}, 1, kLargestFactor);
    scaling.low_factor = rope.Number({"low_freq_factor"}, 1e-6, kLargestFactor);
    scaling.high_factor = rope.Number({"high_freq_factor"}, 1e-6, kLargestFactor);
    scaling.context = rope.Number({"original_max_position_embeddings"}, 1, 1 << 30);
    if (scaling.high_factor <= scaling.low_factor) {
      rope.Wrong("high_freq_factor", "must be larger than low_freq_factor");
    }
    if (config.ok()) ScaleAngles(scaling, arch.rotary_angles);
  } else {
    rope.Unsupported(rope.Has("rope_type") ? "rope_type" : "type",
                     "default, linear and llama3 are");
  }
}

}  // namespace hopscope::checkpoint

// Rotary position embeddings: the angle per slot of each pair of columns.
#ifndef HOPSCOPE_COMMON_CHECKPOINT_FAMILIES_ROPE_H_
#define HOPSCOPE_COMMON_CHECKPOINT_FAMILIES_ROPE_H_

#include <cstdint>
#include <vector>

#include "common/checkpoint/architecture.h"
#include "common/checkpoint/families/config_reader.h"

namespace hopscope::checkpoint {

// theta_t = base^(-2t / rotary_dim), t = 0 .. rotary_dim/2 - 1, in radians per slot (Su et al.,
// arXiv 2104.09864, sec. 3.2.2). rotary_dim is even.
std::vector<double> RotaryAngles(int64_t rotary_dim, double base);

// The scaling of Llama 3.1 (Hugging Face transformers, modeling_rope_utils.py, rope type "llama3").
// With the wave length w = 2 pi / theta: theta stays where w < context / high_factor, becomes theta
// / factor where w > context / low_factor, and in between (1 - s) theta / factor + s theta with s =
// (context / w - low_factor) / (high_factor - low_factor).
struct Llama3Scaling {
  double factor = 1;
  double low_factor = 1;
  double high_factor = 4;
  double context = 8192;  // slots that the model was first trained with
};
void ScaleAngles(const Llama3Scaling& scaling, std::vector<double>& angles);

// Half-split rotary positions over the first int(d_head * share) columns of a head: sets position,
// rotary_dim and rotary_angles. Reads `rope_parameters` (transformers 5) or the base and share from
// the top level and `rope_scaling` (before). Types "default", "linear" and "llama3"; others are
// refused. d_head must be set.
void ReadHalfSplitRope(ConfigReader& config, double default_share, Architecture& architecture);

}  // namespace hopscope::checkpoint

#endif  // HOPSCOPE_COMMON_CHECKPOINT_FAMILIES_ROPE_H_

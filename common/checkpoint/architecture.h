// What the forward pass, the cost estimate and the spectral algebra need to know of a model, in one
// vocabulary for all families. A family's page of code (families/*.cc) fills it in from config.json
// and says where its tensors lie.
//
// Plain data; no ownership, trivially thread-safe.
#ifndef HOPSCOPE_COMMON_CHECKPOINT_ARCHITECTURE_H_
#define HOPSCOPE_COMMON_CHECKPOINT_ARCHITECTURE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace hopscope::checkpoint {

enum class PositionKind {
  kNone,
  kLearned,            // a table of n_positions rows (+ learned_offset) is added to the embedding
  kRotaryInterleaved,  // pairs (2t, 2t+1) of the first rotary_dim columns (GPT-J)
  kRotaryHalfSplit,    // pairs (t, t + rotary_dim/2) (GPT-NeoX, Llama, ...)
  kAlibi,              // slope[head] * (key slot - query slot) is added to the logit
};

inline bool IsRotary(PositionKind kind) {
  return kind == PositionKind::kRotaryInterleaved || kind == PositionKind::kRotaryHalfSplit;
}

enum class NormKind { kNone, kLayerNorm, kRmsNorm };

enum class Activation { kGeluTanh, kGeluErf, kRelu, kSilu };

// How attention and MLP join the residual stream.
enum class BlockForm {
  kSequential,          // x += attn(norm1(x)); x += mlp(norm2(x))
  kParallelSharedNorm,  // x += attn(norm1(x)) + mlp(norm1(x)) (GPT-J)
  kParallelTwoNorms,    // x += attn(norm1(x)) + mlp(norm2(x)) (GPT-NeoX)
  kSandwich,            // x += norm1b(attn(norm1(x))); x += norm2b(mlp(norm2(x))) (Gemma-2)
};

struct Architecture {
  std::string family;  // model_type of config.json
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // query head h reads key/value head h / (heads / kv_heads)
  int64_t d_model = 0;
  int64_t d_head = 0;
  int64_t d_mlp = 0;  // 0: blocks of attention alone
  int64_t vocab_size = 0;
  int64_t n_positions = 0;  // training context as the config states it

  PositionKind position = PositionKind::kNone;
  int64_t learned_offset = 0;  // position p is row p + offset of the table (OPT: 2)
  int64_t rotary_dim = 0;      // columns of a head that rotate
  std::vector<double>
      rotary_angles;  // theta_t in radians per slot, t = 0..rotary_dim/2-1, after any scaling
  std::vector<double> alibi_slopes;  // [heads]

  NormKind norm = NormKind::kLayerNorm;
  double norm_epsilon = 1e-5;
  double norm_gain_offset = 0;  // 1 where the gain is 1 + w (Gemma)
  BlockForm block = BlockForm::kSequential;
  // Where it is off, what a branch computes replaces the stream: x = attn(norm1(x)); x =
  // mlp(norm2(x)).
  bool residual = true;
  Activation activation = Activation::kGeluTanh;
  // The c of x/2 (1 + tanh(c (x + 0.044715 x^3))): sqrt(2/pi), but for families whose code has it
  // cut short (BLOOM).
  double gelu_tanh_factor = 0.79788456080286535588;
  bool gated_mlp = false;  // down(act(gate(x)) * up(x))

  std::vector<double> attention_scale;    // [layers] factor on q.k, usually 1/sqrt(d_head)
  std::vector<int64_t> attention_window;  // [layers]: keys j in (i - w, i]; 0: all earlier keys
  double attention_softcap = 0;           // 0: none
  double logit_softcap = 0;               // 0: none
  double embedding_scale = 1;             // sqrt(d_model) for Gemma
  bool embedding_norm = false;            // LayerNorm after the embedding (BLOOM)
  bool tied_head = false;                 // the output head is the embedding table

  std::vector<int64_t> special_tokens;  // bos, eos, pad ids that the config names
};

// Planes of a head that rotate; 0 where the model has no rotary positions.
inline int64_t RotaryPlanes(const Architecture& architecture) {
  return IsRotary(architecture.position) ? architecture.rotary_dim / 2 : 0;
}

}  // namespace hopscope::checkpoint

#endif  // HOPSCOPE_COMMON_CHECKPOINT_ARCHITECTURE_H_

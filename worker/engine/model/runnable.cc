#include "worker/engine/model/runnable.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/engine/model/rotary_table.h"

namespace hopscope::engine {
namespace {

using checkpoint::Architecture;
using checkpoint::BlockForm;
using checkpoint::NormKind;
using checkpoint::PositionKind;

absl::Status Refuse(const Architecture& architecture, absl::string_view why) {
  return common::MakeError(
      absl::StatusCode::kFailedPrecondition, "CHECKPOINT",
      absl::StrCat("the engine does not run this ", architecture.family, " model: ", why));
}

}  // namespace

absl::Status CheckRunnable(const Architecture& a) {
  if (a.layers < 1 || a.heads < 1 || a.kv_heads < 1 || a.d_model < 1 || a.d_head < 1 ||
      a.d_mlp < 0 || a.vocab_size < 1) {
    return Refuse(a, "a size is 0");
  }
  const bool sequential = a.block == BlockForm::kSequential;
  if (a.d_mlp == 0 && !sequential) {
    return Refuse(a, "its blocks join attention with an MLP that it does not have");
  }
  if (!a.residual && !sequential) {
    return Refuse(a, "its parallel branches have no residual stream to join");
  }
  // BLAS counts in 32 bits.
  constexpr int64_t kWidest = std::numeric_limits<int32_t>::max() / 64;
  if (a.vocab_size > kWidest || a.d_model > kWidest ||
      (a.heads + 2 * a.kv_heads) * a.d_head + 2 * a.d_mlp > kWidest) {
    return Refuse(a, "a weight matrix is too wide");
  }
  if (a.heads % a.kv_heads != 0) {
    return Refuse(
        a, absl::StrCat(a.heads, " query heads do not share ", a.kv_heads, " key heads evenly"));
  }
  if (IsRotary(a.position)) {
    if (a.rotary_dim < 2 || a.rotary_dim % 2 != 0 || a.rotary_dim > a.d_head) {
      return Refuse(a, absl::StrCat(a.rotary_dim, " rotating columns in a head of ", a.d_head));
    }
    if (static_cast<int64_t>(a.rotary_angles.size()) != a.rotary_dim / 2) {
      return Refuse(
          a, absl::StrCat(a.rotary_angles.size(), " rotary angles for ", a.rotary_dim, " columns"));
    }
  }
  if (a.position == PositionKind::kAlibi &&
      static_cast<int64_t>(a.alibi_slopes.size()) != a.heads) {
    return Refuse(a, absl::StrCat(a.alibi_slopes.size(), " ALiBi slopes for ", a.heads, " heads"));
  }
  if (a.position == PositionKind::kLearned && a.n_positions < 1) {
    return Refuse(a, "its table of learned positions is empty");
  }
  if (a.norm == NormKind::kNone && (!sequential || a.embedding_norm)) {
    return Refuse(a, "its blocks ask for a norm that it does not have");
  }
  if (static_cast<int64_t>(a.attention_scale.size()) != a.layers ||
      static_cast<int64_t>(a.attention_window.size()) != a.layers) {
    return Refuse(a, "attention scale or window is not given for every layer");
  }
  return absl::OkStatus();
}

absl::Status CheckLength(const Architecture& a, int64_t tokens) {
  if (a.position == PositionKind::kLearned && tokens > a.n_positions) {
    return common::MakeError(
        absl::StatusCode::kFailedPrecondition, "CHECKPOINT",
        absl::StrCat("sequences of ", tokens, " tokens do not fit the ", a.n_positions,
                     " learned positions of this ", a.family, " model"));
  }
  // Offsets inside a micro-batch are counted in 32 bits by BLAS.
  constexpr int64_t kLongest = 1 << 20;
  if (tokens < 1 || tokens > kLongest) {
    return common::MakeError(
        absl::StatusCode::kFailedPrecondition, "CHECKPOINT",
        absl::StrCat("sequences of ", tokens, " tokens; from 1 to ", kLongest, " are allowed"));
  }
  return absl::OkStatus();
}

}  // namespace hopscope::engine

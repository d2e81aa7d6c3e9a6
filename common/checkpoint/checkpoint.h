// One checkpoint on disk: a Hugging Face folder with config.json and safetensors weights,
// memory-mapped.
//
// Opening checks everything that can be checked without reading the weights. Move-only; the mapping
// lives as long as the object; const methods are thread-safe.
//
// Nothing is copied: somebody who rewrites a weight file changes the weights under the reader, and
// truncating one makes the next access end the process with SIGBUS. Folders must be replaced by
// renaming. What a digest (digest.h) proves, it proves for the moment at which it was taken: take
// it right before use.
#ifndef HOPSCOPE_COMMON_CHECKPOINT_CHECKPOINT_H_
#define HOPSCOPE_COMMON_CHECKPOINT_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/architecture.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::checkpoint {

// Element types that weights may have.
enum class TensorDtype { kF16, kBF16, kF32, kF64 };

int64_t BytesPerElement(TensorDtype dtype);

// A tensor in a mapped file: C order, little-endian, not necessarily aligned to its element size.
struct TensorView {
  TensorDtype dtype = TensorDtype::kF32;
  std::vector<int64_t> shape;
  absl::string_view bytes;
};

// What a weight is for. Weights with one per layer are asked for by layer, the others with layer
// -1.
enum class WeightRole {
  kTokenEmbedding,     // [vocab, d_model]
  kPositionEmbedding,  // [n_positions + learned_offset, d_model]
  kEmbeddingNormGain,  // [d_model]
  kEmbeddingNormBias,
  kNorm1Gain,
  kNorm1Bias,      // before attention, [d_model]
  kNorm1PostGain,  // after attention (Gemma-2)
  kNorm2Gain,
  kNorm2Bias,  // before the MLP
  kNorm2PostGain,
  kQuery,
  kKey,
  kValue,  // [heads * d_head or kv_heads * d_head, d_model]: rows are outputs
  kQueryBias,
  kKeyBias,
  kValueBias,
  kAttentionOut,  // [d_model, heads * d_head]
  kAttentionOutBias,
  kMlpGate,  // [d_mlp, d_model]
  kMlpUp,
  kMlpUpBias,  // [d_mlp, d_model]
  kMlpDown,
  kMlpDownBias,  // [d_model, d_mlp]
  kFinalNormGain,
  kFinalNormBias,
  kHead,      // [vocab, d_model]
  kHeadBias,  // [vocab]
};

// How a role's matrix lies in a stored tensor. Element (r, c) of the role is element
// (first + (r / block) * stride + r % block, c) of the stored tensor, or its transpose where
// `transposed` is set.
struct WeightSlice {
  TensorView tensor;
  int64_t rows = 0;
  int64_t columns = 1;
  int64_t first = 0;
  int64_t block = 0;  // 0: rows
  int64_t stride = 0;
  bool transposed = false;  // Conv1D of GPT-2: stored [in, out]
};

class Checkpoint {
 public:
  // `path` is a folder; errors name files relative to it. FAILED_PRECONDITION, or NOT_FOUND where
  // the folder or a file is missing, with a reason CHECKPOINT_* for each kind of broken folder
  // (README.md lists them). A tensor in the files that the family does not have is refused too:
  // with it, this would be another model.
  static absl::StatusOr<Checkpoint> Open(const std::string& path);

  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  const Architecture& architecture() const;
  v1::ModelShape shape() const;
  int64_t weight_bytes() const;

  // Whether the model has a weight of this role; layer -1 for those outside the layers. A tied head
  // (tied_head) is there: kHead then is the token embedding.
  bool Has(WeightRole role, int64_t layer = -1) const;
  // The weight; must be there (Has).
  const WeightSlice& Weight(WeightRole role, int64_t layer = -1) const;

  // config.json and the weight files, sorted by name; absolute paths.
  const std::vector<std::string>& files() const;

 private:
  struct Impl;
  explicit Checkpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hopscope::checkpoint

#endif  // HOPSCOPE_COMMON_CHECKPOINT_CHECKPOINT_H_

// The steps of a layer that are not matrix products with weights, with one implementation in
// hand-written CPU loops and one in LibTorch's general operators, which runs on any device.
//
// Tensors are matrices of rows [n, columns] whose last dimension lies contiguously; rows may lie
// apart. For this folder's .cc files only; may throw LibTorch's exceptions. One thread at a time
// per object.
#ifndef HOPSCOPE_WORKER_ENGINE_MODEL_LAYER_OPS_H_
#define HOPSCOPE_WORKER_ENGINE_MODEL_LAYER_OPS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "worker/engine/engine.h"
#include "worker/engine/model/activations.h"
#include "worker/engine/model/head_replacement.h"
#include "worker/engine/model/model.h"
#include "worker/engine/model/weights.h"

namespace hopscope::engine {

// Attention of all heads of one layer.
struct AttentionInputs {
  const Model* model = nullptr;
  int64_t layer = 0;
  int64_t sequences = 0;
  int64_t tokens = 0;
  int64_t first_query = 0;  // queries first_query .. tokens-1 of each sequence
  at::Tensor keys;          // [sequences * tokens, kv_heads * d_head], before position
  at::Tensor values;        // the same
  at::Tensor queries;       // [sequences * tokens, heads * d_head]
  at::Tensor out;           // the same; rows of the queries asked for are written
  const HeadReplacements* replacements = nullptr;  // may be null
  ForwardObserver* observer = nullptr;
  const CancelFlag* cancel = nullptr;
};

class LayerOps {
 public:
  virtual ~LayerOps() = default;

  // out = token embedding * scale (+ position embedding, then + norm where the model has them)
  virtual void Embed(const Model& model, int64_t sequences, int64_t tokens, const int32_t* ids,
                     const at::Tensor& out) = 0;
  // A copy where the model has no norms.
  virtual void Norm(const Model& model, const NormWeights& weights, const at::Tensor& in,
                    const at::Tensor& out) = 0;
  // rows += bias
  virtual void AddBias(const at::Tensor& bias, const at::Tensor& rows) = 0;
  // rows += other
  virtual void AddRows(const at::Tensor& other, const at::Tensor& rows) = 0;
  // out = act(gate) * (up + up_bias) where `gate` is defined, else act(up + up_bias)
  virtual void Activate(const Model& model, const at::Tensor& gate, const at::Tensor& up,
                        const at::Tensor& up_bias, const at::Tensor& out) = 0;
  // False where it was cancelled.
  virtual bool Attention(const AttentionInputs& inputs) = 0;
  // rows = cap * tanh(rows / cap)
  virtual void Softcap(double cap, const at::Tensor& rows) = 0;
  // The rows in host memory, float32 where they are of a 16-bit format; valid until the next call.
  virtual MatrixView View(const at::Tensor& rows) = 0;
};

// Queries whose attention weights are held at a time.
inline constexpr int64_t kQueriesPerTile = 128;

std::unique_ptr<LayerOps> MakeCpuOps();  // float32 and float64
std::unique_ptr<LayerOps> MakeGeneralOps();

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_MODEL_LAYER_OPS_H_

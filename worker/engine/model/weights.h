// A model's weights as LibTorch tensors, packed for few and large matrix products.
//
// Matrices hold outputs in rows: y = x W^T. Undefined tensors stand for weights that the model does
// not have. For this folder's .cc files only.
#ifndef HOPSCOPE_WORKER_ENGINE_MODEL_WEIGHTS_H_
#define HOPSCOPE_WORKER_ENGINE_MODEL_WEIGHTS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint.h"
#include "worker/engine/model/model.h"

namespace hopscope::engine {

struct NormWeights {
  at::Tensor gain;  // [d_model], the model's offset included
  at::Tensor bias;
};

struct LayerWeights {
  NormWeights norm1;
  NormWeights norm1_post;
  NormWeights norm2;
  NormWeights norm2_post;

  // What reads a norm's output. Rows: keys, values, queries; then, for the MLP, gate (if gated) and
  // up. Where both read the same norm, the two are views of one matrix, `in`.
  at::Tensor in;
  at::Tensor attention_in;       // [(2 kv_heads + heads) * d_head, d_model]
  at::Tensor attention_in_bias;  // zeros for those of the three that have none
  at::Tensor mlp_in;             // [d_mlp or 2 d_mlp, d_model]
  at::Tensor mlp_up_bias;        // [d_mlp]

  // What writes to the residual stream. Where both write at once (parallel blocks), the two are
  // views of one matrix, `out` [d_model, heads * d_head + d_mlp], with one bias.
  at::Tensor out;
  at::Tensor out_bias;
  at::Tensor attention_out;  // [d_model, heads * d_head]
  at::Tensor attention_out_bias;
  at::Tensor mlp_out;  // [d_model, d_mlp]
  at::Tensor mlp_out_bias;
};

struct ModelWeights {
  at::Tensor token_embedding;     // [vocab, d_model]
  at::Tensor position_embedding;  // [n_positions + learned_offset, d_model]
  NormWeights embedding_norm;
  std::vector<LayerWeights> layers;
  NormWeights final_norm;
  at::Tensor head;  // [vocab, d_model]
  at::Tensor head_bias;
};

// Whether attention and MLP read the same norm's output, and whether they write to the residual
// stream at once.
bool SharesIn(checkpoint::BlockForm block);
bool SharesOut(checkpoint::BlockForm block);

// Copies the weights out of the checkpoint. May throw LibTorch's exceptions.
ModelWeights LoadWeights(const checkpoint::Checkpoint& checkpoint, v1::Dtype dtype, Device device);

// Bytes that the tensors take, each storage counted once.
int64_t BytesOf(const ModelWeights& weights);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_MODEL_WEIGHTS_H_

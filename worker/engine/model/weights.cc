#include "worker/engine/model/weights.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <set>

#include "worker/engine/model/read_weight.h"

namespace hopscope::engine {
namespace {

using checkpoint::Architecture;
using checkpoint::BlockForm;
using checkpoint::Checkpoint;
using checkpoint::WeightRole;

at::ScalarType ScalarTypeOf(v1::Dtype dtype) {
  switch (dtype) {
    case v1::DTYPE_FLOAT64:
      return at::kDouble;
    case v1::DTYPE_BFLOAT16:
      return at::kBFloat16;
    case v1::DTYPE_FLOAT16:
      return at::kHalf;
    default:
      return at::kFloat;
  }
}

class Loader {
 public:
  Loader(const Checkpoint& checkpoint, v1::Dtype dtype, Device device)
      : checkpoint_(checkpoint),
        architecture_(checkpoint.architecture()),
        type_(ScalarTypeOf(dtype)),
        host_(at::TensorOptions().dtype(type_ == at::kDouble ? at::kDouble : at::kFloat)),
        device_(device.cuda ? at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device.index))
                            : at::Device(at::kCPU)) {}

  ModelWeights Load() {
    ModelWeights weights;
    weights.token_embedding = Place(Matrix(WeightRole::kTokenEmbedding, -1));
    if (checkpoint_.Has(WeightRole::kPositionEmbedding)) {
      weights.position_embedding = Place(Matrix(WeightRole::kPositionEmbedding, -1));
    }
    weights.embedding_norm =
        Norm(WeightRole::kEmbeddingNormGain, WeightRole::kEmbeddingNormBias, -1);
    for (int64_t layer = 0; layer < architecture_.layers; ++layer) {
      weights.layers.push_back(Layer(layer));
    }
    weights.final_norm = Norm(WeightRole::kFinalNormGain, WeightRole::kFinalNormBias, -1);
    weights.head = checkpoint_.Has(WeightRole::kHead) ? Place(Matrix(WeightRole::kHead, -1))
                                                      : weights.token_embedding;
    weights.head_bias = Vector(WeightRole::kHeadBias, -1);
    return weights;
  }

 private:
  at::Tensor Place(const at::Tensor& tensor) const { return tensor.to(device_, type_); }

  // Copies a weight into `out`, whose rows may lie apart.
  void Read(WeightRole role, int64_t layer, const at::Tensor& out) const {
    const checkpoint::WeightSlice& slice = checkpoint_.Weight(role, layer);
    TORCH_CHECK(slice.rows == out.size(0) && (out.dim() == 1 || slice.columns == out.size(1)),
                "a weight of layer ", layer, " has the wrong shape");
    const int64_t stride = out.stride(0);
    if (out.scalar_type() == at::kDouble) {
      ReadWeight(slice, out.mutable_data_ptr<double>(), stride);
    } else {
      ReadWeight(slice, out.mutable_data_ptr<float>(), stride);
    }
  }

  at::Tensor Matrix(WeightRole role, int64_t layer) const {
    const checkpoint::WeightSlice& slice = checkpoint_.Weight(role, layer);
    const at::Tensor matrix = at::empty({slice.rows, slice.columns}, host_);
    Read(role, layer, matrix);
    return matrix;
  }

  // On the device; undefined where the model has no such weight.
  at::Tensor Vector(WeightRole role, int64_t layer) const {
    if (!checkpoint_.Has(role, layer)) return {};
    const at::Tensor vector = at::empty({checkpoint_.Weight(role, layer).rows}, host_);
    Read(role, layer, vector);
    return Place(vector);
  }

  NormWeights Norm(WeightRole gain, WeightRole bias, int64_t layer) const {
    NormWeights norm{.gain = Wide(Vector(gain, layer)), .bias = Wide(Vector(bias, layer))};
    if (norm.gain.defined() && architecture_.norm_gain_offset != 0) {
      norm.gain.add_(architecture_.norm_gain_offset);
    }
    return norm;
  }

  // A vector of the model's format in the format that norms compute in.
  at::Tensor Wide(const at::Tensor& vector) const {
    return vector.defined() ? vector.to(host_.dtype().toScalarType()) : vector;
  }

  LayerWeights Layer(int64_t layer) const {
    const Architecture& a = architecture_;
    const int64_t kv = a.kv_heads * a.d_head;
    const int64_t heads = a.heads * a.d_head;
    const int64_t attention = 2 * kv + heads;
    const int64_t mlp = a.gated_mlp ? 2 * a.d_mlp : a.d_mlp;
    LayerWeights weights;
    weights.norm1 = Norm(WeightRole::kNorm1Gain, WeightRole::kNorm1Bias, layer);
    weights.norm2 = Norm(WeightRole::kNorm2Gain, WeightRole::kNorm2Bias, layer);
    if (checkpoint_.Has(WeightRole::kNorm1PostGain, layer)) {
      weights.norm1_post.gain = Wide(Vector(WeightRole::kNorm1PostGain, layer));
      weights.norm2_post.gain = Wide(Vector(WeightRole::kNorm2PostGain, layer));
      weights.norm1_post.gain.add_(a.norm_gain_offset);
      weights.norm2_post.gain.add_(a.norm_gain_offset);
    }

    at::Tensor in = at::empty({attention + mlp, a.d_model}, host_);
    Read(WeightRole::kKey, layer, in.narrow(0, 0, kv));
    Read(WeightRole::kValue, layer, in.narrow(0, kv, kv));
    Read(WeightRole::kQuery, layer, in.narrow(0, 2 * kv, heads));
    if (a.gated_mlp) Read(WeightRole::kMlpGate, layer, in.narrow(0, attention, a.d_mlp));
    if (a.d_mlp > 0) {
      Read(WeightRole::kMlpUp, layer, in.narrow(0, attention + mlp - a.d_mlp, a.d_mlp));
    }
    in = Place(in);
    weights.attention_in = in.narrow(0, 0, attention);
    weights.mlp_in = in.narrow(0, attention, mlp);
    if (SharesIn(a.block)) weights.in = in;

    if (checkpoint_.Has(WeightRole::kQueryBias, layer) ||
        checkpoint_.Has(WeightRole::kKeyBias, layer) ||
        checkpoint_.Has(WeightRole::kValueBias, layer)) {
      at::Tensor bias = at::zeros({attention}, host_);
      const auto read = [&](WeightRole role, int64_t first, int64_t count) {
        if (checkpoint_.Has(role, layer)) Read(role, layer, bias.narrow(0, first, count));
      };
      read(WeightRole::kKeyBias, 0, kv);
      read(WeightRole::kValueBias, kv, kv);
      read(WeightRole::kQueryBias, 2 * kv, heads);
      weights.attention_in_bias = Place(bias);
    }
    weights.mlp_up_bias = Vector(WeightRole::kMlpUpBias, layer);

    at::Tensor out = at::empty({a.d_model, heads + a.d_mlp}, host_);
    Read(WeightRole::kAttentionOut, layer, out.narrow(1, 0, heads));
    if (a.d_mlp > 0) Read(WeightRole::kMlpDown, layer, out.narrow(1, heads, a.d_mlp));
    out = Place(out);
    weights.attention_out = out.narrow(1, 0, heads);
    weights.mlp_out = out.narrow(1, heads, a.d_mlp);
    weights.attention_out_bias = Vector(WeightRole::kAttentionOutBias, layer);
    weights.mlp_out_bias = Vector(WeightRole::kMlpDownBias, layer);
    if (SharesOut(a.block)) {
      weights.out = out;
      const at::Tensor& attention_bias = weights.attention_out_bias;
      const at::Tensor& mlp_bias = weights.mlp_out_bias;
      weights.out_bias = !attention_bias.defined() ? mlp_bias
                         : !mlp_bias.defined()     ? attention_bias
                                                   : attention_bias.add(mlp_bias);
    }
    return weights;
  }

  const Checkpoint& checkpoint_;
  const Architecture& architecture_;
  const at::ScalarType type_;     // of the weights
  const at::TensorOptions host_;  // what they are read in: float32 or float64
  const at::Device device_;
};

}  // namespace

bool SharesIn(BlockForm block) { return block == BlockForm::kParallelSharedNorm; }

bool SharesOut(BlockForm block) {
  return block == BlockForm::kParallelSharedNorm || block == BlockForm::kParallelTwoNorms;
}

ModelWeights LoadWeights(const Checkpoint& checkpoint, v1::Dtype dtype, Device device) {
  return Loader(checkpoint, dtype, device).Load();
}

int64_t BytesOf(const ModelWeights& weights) {
  std::set<const void*> seen;
  int64_t bytes = 0;
  const auto count = [&](const at::Tensor& tensor) {
    if (tensor.defined() && seen.insert(tensor.storage().data()).second) {
      bytes += static_cast<int64_t>(tensor.storage().nbytes());
    }
  };
  const auto count_norm = [&](const NormWeights& norm) {
    count(norm.gain);
    count(norm.bias);
  };
  count(weights.token_embedding);
  count(weights.position_embedding);
  count_norm(weights.embedding_norm);
  for (const LayerWeights& layer : weights.layers) {
    for (const NormWeights* norm :
         {&layer.norm1, &layer.norm1_post, &layer.norm2, &layer.norm2_post}) {
      count_norm(*norm);
    }
    for (const at::Tensor* tensor :
         {&layer.attention_in, &layer.attention_in_bias, &layer.mlp_in, &layer.mlp_up_bias,
          &layer.attention_out, &layer.attention_out_bias, &layer.mlp_out, &layer.mlp_out_bias,
          &layer.out_bias}) {
      count(*tensor);
    }
  }
  count_norm(weights.final_norm);
  count(weights.head);
  count(weights.head_bias);
  return bytes;
}

}  // namespace hopscope::engine

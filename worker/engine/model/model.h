// A loaded checkpoint: its architecture and its weights, in the format and on the device that it is
// computed with.
//
// Immutable and shared; thread-safe. Free of LibTorch types.
#ifndef HOPSCOPE_WORKER_ENGINE_MODEL_MODEL_H_
#define HOPSCOPE_WORKER_ENGINE_MODEL_MODEL_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint.h"
#include "hopscope/v1/evaluation.pb.h"
#include "worker/engine/model/rotary_table.h"

namespace hopscope::engine {

// Where a model lives.
struct Device {
  bool cuda = false;
  int index = 0;  // of the CUDA device
};

struct ModelWeights;  // weights.h

class Model {
 public:
  // Reads all weights. FAILED_PRECONDITION with reason CHECKPOINT where the forward pass does not
  // run the architecture; RESOURCE_EXHAUSTED with reason OUT_OF_MEMORY. `dtype` is any format
  // but DTYPE_UNSPECIFIED.
  static absl::StatusOr<std::shared_ptr<const Model>> Load(const checkpoint::Checkpoint& checkpoint,
                                                           v1::Dtype dtype, Device device = {});
  ~Model();

  const checkpoint::Architecture& architecture() const { return architecture_; }
  v1::Dtype dtype() const { return dtype_; }
  // What it shows of itself, and what its tables are in: float64, or else float32.
  bool float64() const { return dtype_ == v1::DTYPE_FLOAT64; }
  // bfloat16 or float16: weights and activations are of that format, what is summed over many
  // numbers (matrix products, attention, norms) and the logits are float32.
  bool half() const { return dtype_ == v1::DTYPE_BFLOAT16 || dtype_ == v1::DTYPE_FLOAT16; }
  Device device() const { return device_; }
  // Bytes that the weights take as loaded.
  int64_t weight_bytes() const { return weight_bytes_; }
  const ModelWeights& weights() const { return *weights_; }

  // T must be what float64() says.
  template <typename T>
  const RotaryTables<T>& rotary_tables() const;

 private:
  Model(const checkpoint::Architecture& architecture, v1::Dtype dtype, Device device);

  const checkpoint::Architecture architecture_;
  const v1::Dtype dtype_;
  const Device device_;
  int64_t weight_bytes_ = 0;
  std::unique_ptr<const ModelWeights> weights_;
  const RotaryTables<float> float32_tables_;
  const RotaryTables<double> float64_tables_;
};

template <>
inline const RotaryTables<float>& Model::rotary_tables<float>() const {
  return float32_tables_;
}
template <>
inline const RotaryTables<double>& Model::rotary_tables<double>() const {
  return float64_tables_;
}

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_MODEL_MODEL_H_

// Writes a safetensors file (https://github.com/huggingface/safetensors) whose tensors are known
// beforehand and come one after the other, so that a file may be larger than memory.
//
// Not thread-safe.
#ifndef HOPSCOPE_WORKER_ENGINE_OFFLINE_SAFETENSORS_WRITER_H_
#define HOPSCOPE_WORKER_ENGINE_OFFLINE_SAFETENSORS_WRITER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/output_file.h"

namespace hopscope::engine {

class SafetensorsWriter {
 public:
  struct Tensor {
    std::string name;
    std::string dtype;  // "F32", "F64", "I64", ...
    int64_t element_bytes = 0;
    std::vector<int64_t> shape;

    int64_t bytes() const;
  };

  // Writes the header. Names must differ.
  static absl::StatusOr<SafetensorsWriter> Create(
      const std::string& path, const std::vector<Tensor>& tensors,
      const std::map<std::string, std::string>& metadata);

  // The next bytes of the tensors, in their order; pieces may be cut anywhere.
  absl::Status Append(absl::string_view bytes);

  // INTERNAL where bytes are missing; then no file appears.
  absl::Status Finish();

 private:
  SafetensorsWriter(common::OutputFile file, int64_t bytes)
      : file_(std::move(file)), missing_(bytes) {}

  common::OutputFile file_;
  int64_t missing_;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_OFFLINE_SAFETENSORS_WRITER_H_

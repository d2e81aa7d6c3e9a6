// What the engine asks of LibTorch as a library: its versions, its threads, its devices, and one
// place where its exceptions become statuses.
//
// Free of LibTorch types, so that few files pay for its headers. Thread-safe.
#ifndef HOPSCOPE_WORKER_ENGINE_MODEL_TORCH_RUNTIME_H_
#define HOPSCOPE_WORKER_ENGINE_MODEL_TORCH_RUNTIME_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hopscope::engine {

// "2.11.0"
std::string TorchVersion();

// Instruction set that LibTorch's own loops use: "AVX512", "AVX2", "DEFAULT".
std::string TorchCpuCapability();

// Makes the BLAS below LibTorch (MKL) choose its code by instruction set and maker of the processor
// alone, not by the processor's generation nor by how memory is aligned, so that results are the
// same on every machine of a kind. A choice in the environment (MKL_CBWR) is left alone. Must be
// called before the first matrix product, and while no other thread reads or writes the
// environment.
void PinBlasCodePath();

// Lets matrix products on this thread use this thread alone. For every thread that computes.
void UseOneTorchThread();

// Runs `body`. An exception becomes an error with reason OUT_OF_MEMORY (RESOURCE_EXHAUSTED) where
// memory ran out, else INTERNAL.
absl::Status CatchTorch(const std::function<absl::Status()>& body);

// Loads LibTorch's CUDA library and looks for a device of that number. FAILED_PRECONDITION with
// reason CUDA_UNAVAILABLE says what is missing.
absl::Status LoadCuda(int device_index);

struct DeviceDescription {
  std::string name;
  int64_t memory_bytes = 0;
};

// The device, which LoadCuda found.
DeviceDescription DescribeCuda(int device_index);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_MODEL_TORCH_RUNTIME_H_

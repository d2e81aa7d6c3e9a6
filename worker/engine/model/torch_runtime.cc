#include "worker/engine/model/torch_runtime.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <torch/headeronly/version.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace hopscope::engine {
namespace {

// What the CUDA driver and run-time libraries are asked, by their C interface: they are loaded at
// run time, where they are there at all.
using CuDeviceGetName = int (*)(char* name, int length, int device);
using CuDeviceTotalMem = int (*)(size_t* bytes, int device);

template <typename Function>
Function FindSymbol(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

absl::Status CudaUnavailable(absl::string_view why) {
  return common::MakeError(absl::StatusCode::kFailedPrecondition, "CUDA_UNAVAILABLE",
                           absl::StrCat("no CUDA device can be used: ", why));
}

}  // namespace

std::string TorchVersion() {
  return absl::StrCat(TORCH_VERSION_MAJOR, ".", TORCH_VERSION_MINOR, ".", TORCH_VERSION_PATCH);
}

std::string TorchCpuCapability() { return at::get_cpu_capability(); }

void PinBlasCodePath() {
  const std::string capability = at::get_cpu_capability();
  if (capability == "AVX512" || capability == "AVX2") {
    setenv("MKL_CBWR", capability.c_str(), /*overwrite=*/0);
  }
}

void UseOneTorchThread() { at::set_num_threads(1); }

absl::Status CatchTorch(const std::function<absl::Status()>& body) {
  // The error is described inside the handlers and made outside: what recovers from it must not run
  // while an exception is in flight.
  bool out_of_memory = false;
  std::string what;
  try {
    return body();
  } catch (const c10::OutOfMemoryError& error) {
    out_of_memory = true;
    what = error.what_without_backtrace();
  } catch (const std::bad_alloc&) {
    out_of_memory = true;
    what = "the host has no memory left";
  } catch (const c10::Error& error) {
    what = error.what_without_backtrace();
    // The CPU allocator's failure has no type of its own.
    out_of_memory = absl::StrContains(what, "DefaultCPUAllocator");
  } catch (const std::exception& error) {
    what = error.what();
  }
  return out_of_memory
             ? common::MakeError(absl::StatusCode::kResourceExhausted, "OUT_OF_MEMORY", what)
             : common::MakeError(absl::StatusCode::kInternal, "INTERNAL",
                                 absl::StrCat("LibTorch: ", what));
}

absl::Status LoadCuda(int device_index) {
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    const char* const why = dlerror();
    return CudaUnavailable(absl::StrCat("LibTorch's CUDA library does not load (",
                                        why == nullptr ? "unknown cause" : why, ")"));
  }
  int64_t devices = 0;
  absl::Status status = CatchTorch([&] {
    devices = at::hasCUDA() ? static_cast<int64_t>(at::getNumGPUs()) : 0;
    // Sums of products of 16-bit numbers stay in float32 until they are complete.
    at::globalContext().setAllowFP16ReductionCuBLAS(false);
    at::globalContext().setAllowBF16ReductionCuBLAS(false);
    return absl::OkStatus();
  });
  if (!status.ok()) return CudaUnavailable(status.message());
  if (device_index >= devices) {
    return CudaUnavailable(
        absl::StrCat("device cuda:", device_index, " was asked for, the machine has ", devices));
  }
  return absl::OkStatus();
}

DeviceDescription DescribeCuda(int device_index) {
  DeviceDescription description{.name = absl::StrCat("cuda:", device_index)};
  dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (const auto get_name = FindSymbol<CuDeviceGetName>("cuDeviceGetName"); get_name != nullptr) {
    char name[256] = {};
    if (get_name(name, sizeof(name) - 1, device_index) == 0) description.name = name;
  }
  if (const auto get_memory = FindSymbol<CuDeviceTotalMem>("cuDeviceTotalMem_v2");
      get_memory != nullptr) {
    size_t bytes = 0;
    if (get_memory(&bytes, device_index) == 0) {
      description.memory_bytes = static_cast<int64_t>(bytes);
    }
  }
  return description;
}

}  // namespace hopscope::engine

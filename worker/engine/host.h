// The machine that the process runs on.
//
// Thread-safe.
#ifndef HOPSCOPE_WORKER_ENGINE_HOST_H_
#define HOPSCOPE_WORKER_ENGINE_HOST_H_

#include <cstdint>
#include <string>

namespace hopscope::engine {

// The processor's name for people; "cpu" where the system does not tell.
std::string HostProcessorName();

// Its maker: "amd", "intel" or "other". Libraries choose code by it.
std::string HostProcessorMaker();

// Bytes of memory that the process may use: the machine's, or its control group's limit.
int64_t HostMemoryBytes();

// Processors that the process may run on, at least 1.
int HostThreads();

// Threads that may be asked for at most.
inline constexpr int kMaxThreads = 1024;

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_HOST_H_

// Which architectures the forward pass runs.
#ifndef HOPSCOPE_WORKER_ENGINE_MODEL_RUNNABLE_H_
#define HOPSCOPE_WORKER_ENGINE_MODEL_RUNNABLE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/checkpoint/architecture.h"

namespace hopscope::engine {

// OK, or FAILED_PRECONDITION with reason CHECKPOINT that says what about the architecture the
// forward pass cannot do: it never computes something similar instead.
absl::Status CheckRunnable(const checkpoint::Architecture& architecture);

// OK, or FAILED_PRECONDITION with reason CHECKPOINT where the model has no positions for sequences
// of so many tokens.
absl::Status CheckLength(const checkpoint::Architecture& architecture, int64_t tokens);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_MODEL_RUNNABLE_H_

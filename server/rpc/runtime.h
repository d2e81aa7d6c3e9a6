// What the handlers of all services share, and the errors that any call can end with.
#ifndef HOPSCOPE_SERVER_RPC_RUNTIME_H_
#define HOPSCOPE_SERVER_RPC_RUNTIME_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "prometheus/registry.h"
#include "server/rpc/executor.h"
#include "server/rpc/open_calls.h"
#include "server/rpc/rpc_metrics.h"
#include "server/rpc/timer.h"

namespace hopscope::rpc {

// Outlives every call. Thread-safe.
struct Runtime {
  struct Options {
    Executor::Options executor;
  };

  // The registry must outlive the runtime.
  Runtime(Options options, prometheus::Registry& registry)
      : metrics(registry), executor(options.executor) {}

  RpcMetrics metrics;
  OpenCalls open_calls;
  Timer timer;
  Executor executor;
};

// UNAVAILABLE: more calls wait for a thread than the executor's queue holds.
absl::Status BusyError();
// UNAVAILABLE: the server stops; whoever connects again finds its successor or another replica.
absl::Status ShuttingDownError();
// CANCELLED: the client gave the call up, or its deadline passed.
absl::Status AbandonedError();

}  // namespace hopscope::rpc

#endif  // HOPSCOPE_SERVER_RPC_RUNTIME_H_

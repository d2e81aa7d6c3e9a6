// One call from its start to its status, for metrics and the log.
#ifndef HOPSCOPE_SERVER_RPC_CALL_RECORD_H_
#define HOPSCOPE_SERVER_RPC_CALL_RECORD_H_

#include <chrono>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"
#include "server/rpc/call_metadata.h"
#include "server/rpc/rpc_metrics.h"

namespace hopscope::rpc {

// A plain value: copies stand for the same call.
class CallRecord {
 public:
  // Begins now. `metrics` and `metadata` must outlive the call.
  CallRecord(RpcMetrics* metrics, Method method, const ClientMetadata* metadata)
      : metrics_(metrics),
        method_(method),
        metadata_(metadata),
        start_(std::chrono::steady_clock::now()) {}

  // Counts the call, logs it where the server is at fault, and returns what to finish it with. Once
  // a call, just before its reactor's Finish().
  grpc::Status End(const absl::Status& status) const;

 private:
  RpcMetrics* metrics_;
  Method method_;
  const ClientMetadata* metadata_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace hopscope::rpc

#endif  // HOPSCOPE_SERVER_RPC_CALL_RECORD_H_

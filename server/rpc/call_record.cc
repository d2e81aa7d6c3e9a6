#include "server/rpc/call_record.h"

#include "common/logging.h"
#include "common/rpc/grpc_status.h"
#include "common/status.h"

namespace hopscope::rpc {
namespace {

void LogFault(Method method, const ClientMetadata& metadata, const absl::Status& status) {
  const absl::StatusOr<jobs::CallContext> context = ReadCallContext(metadata);
  common::Log(spdlog::level::err, "RPC failed",
              {{"method", MethodName(method)},
               {"reason", common::ErrorReason(status)},
               {"error", status},
               {"trace_id", context.ok() ? common::TraceId(context->traceparent) : ""}});
}

}  // namespace

grpc::Status CallRecord::End(const absl::Status& status) const {
  metrics_->Record(method_, status.code(), std::chrono::steady_clock::now() - start_);
  switch (status.code()) {
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDataLoss:
      LogFault(method_, *metadata_, status);
      break;
    default:
      break;
  }
  return common::ToGrpcStatus(status);
}

}  // namespace hopscope::rpc

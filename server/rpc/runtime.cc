#include "server/rpc/runtime.h"

#include "common/rpc/grpc_status.h"
#include "common/status.h"

namespace hopscope::rpc {

absl::Status BusyError() {
  return common::WithRetryDelay(
      common::MakeError(absl::StatusCode::kUnavailable, "SERVER_BUSY",
                        "the server has more calls than it can work on; try again"),
      absl::Seconds(1));
}

absl::Status ShuttingDownError() {
  return common::WithRetryDelay(
      common::MakeError(absl::StatusCode::kUnavailable, "SERVER_SHUTTING_DOWN",
                        "the server is shutting down; connect again and resume"),
      absl::Seconds(1));
}

absl::Status AbandonedError() {
  return common::MakeError(absl::StatusCode::kCancelled, "CALL_ABANDONED",
                           "the caller gave up waiting, or its deadline passed");
}

}  // namespace hopscope::rpc

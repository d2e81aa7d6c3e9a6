// Errors on the wire: absl::Status to grpc::Status with a google.rpc.Status in its details, and
// back.
//
// An error travels with its code, its message (cut at 1,024 bytes), one google.rpc.ErrorInfo, and a
// google.rpc.RetryInfo where it has one. Other payloads stay behind. Details stay below what a
// client with default settings takes in its trailing metadata (8 KiB), so values of an ErrorInfo's
// metadata are cut where they are long. Thread-safe.
#ifndef HOPSCOPE_COMMON_RPC_GRPC_STATUS_H_
#define HOPSCOPE_COMMON_RPC_GRPC_STATUS_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/support/status.h"

namespace hopscope::common {

// Longest message of an error on the wire, in bytes.
inline constexpr size_t kMaxErrorMessageBytes = 1024;

// An error without an ErrorInfo gets one with its code's name as the reason. INTERNAL, UNKNOWN and
// DATA_LOSS keep their reason and message alone: what else they carry is for the log.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Details that do not parse, or contradict the code, are left out.
absl::Status FromGrpcStatus(const grpc::Status& status);

// Tells the client when to try again, with a google.rpc.RetryInfo.
absl::Status WithRetryDelay(absl::Status status, absl::Duration delay);
std::optional<absl::Duration> GetRetryDelay(const absl::Status& status);

}  // namespace hopscope::common

#endif  // HOPSCOPE_COMMON_RPC_GRPC_STATUS_H_

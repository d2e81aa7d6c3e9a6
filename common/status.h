// Errors as every part of Hopscope makes them: an absl::Status that carries one
// google.rpc.ErrorInfo, which the RPC layer turns into google.rpc.Status and the client turns back.
#ifndef HOPSCOPE_COMMON_STATUS_H_
#define HOPSCOPE_COMMON_STATUS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/rpc/error_details.pb.h"

namespace hopscope::common {

// Domain of every ErrorInfo.
inline constexpr absl::string_view kErrorDomain = "hopscope.dev";

// Metadata keys and values of an ErrorInfo.
using ErrorMetadata = std::vector<std::pair<std::string, std::string>>;

// An error with an ErrorInfo. `reason` is UPPER_SNAKE; `message` says what is wrong and what to do.
// What is no UTF-8 in message or metadata is replaced by U+FFFD: protobuf carries text alone.
absl::Status MakeError(absl::StatusCode code, absl::string_view reason, absl::string_view message,
                       const ErrorMetadata& metadata = {});

// INVALID_ARGUMENT for one field: "FIELD: VALUE is not allowed; ALLOWED". `field` is its path, such
// as spec.tasks[0].hops[3]; metadata gets "field", "value" and "allowed".
absl::Status InvalidField(absl::string_view reason, absl::string_view field,
                          absl::string_view value, absl::string_view allowed);

// The ErrorInfo of a status, where it has one.
std::optional<google::rpc::ErrorInfo> GetErrorInfo(const absl::Status& status);

// The reason of its ErrorInfo, or the name of its code.
std::string ErrorReason(const absl::Status& status);

// The same error with "PREFIX: " in front of its message; payloads are kept.
absl::Status Annotate(const absl::Status& status, absl::string_view prefix);

}  // namespace hopscope::common

#define HOPSCOPE_RETURN_IF_ERROR(expression)                                  \
  do {                                                                        \
    if (absl::Status hopscope_status = (expression); !hopscope_status.ok()) { \
      return hopscope_status;                                                 \
    }                                                                         \
  } while (false)

#define HOPSCOPE_STATUS_CONCAT_(a, b) a##b
#define HOPSCOPE_STATUS_CONCAT(a, b) HOPSCOPE_STATUS_CONCAT_(a, b)

// HOPSCOPE_ASSIGN_OR_RETURN(auto value, Function());
#define HOPSCOPE_ASSIGN_OR_RETURN(declaration, expression)                                      \
  HOPSCOPE_ASSIGN_OR_RETURN_(HOPSCOPE_STATUS_CONCAT(hopscope_statusor_, __LINE__), declaration, \
                             expression)
#define HOPSCOPE_ASSIGN_OR_RETURN_(statusor, declaration, expression) \
  auto statusor = (expression);                                       \
  if (!statusor.ok()) return std::move(statusor).status();            \
  declaration = *std::move(statusor)

#endif  // HOPSCOPE_COMMON_STATUS_H_

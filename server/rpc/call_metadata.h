// What comes with a call besides its request.
#ifndef HOPSCOPE_SERVER_RPC_CALL_METADATA_H_
#define HOPSCOPE_SERVER_RPC_CALL_METADATA_H_

#include <map>

#include "absl/status/statusor.h"
#include "grpcpp/support/string_ref.h"
#include "server/jobs/job_service.h"

namespace hopscope::rpc {

// Metadata key of the tenant that a client acts for.
inline constexpr char kTenantKey[] = "hopscope-tenant";
// Metadata key of the W3C trace context.
inline constexpr char kTraceparentKey[] = "traceparent";

using ClientMetadata = std::multimap<grpc::string_ref, grpc::string_ref>;

// Tenant ("default" where none is given) and trace context. INVALID_ARGUMENT where the tenant is
// given twice, or is not 1 to 63 letters, digits, '-', '_' and '.' with a letter or digit first. A
// traceparent that is none is left out, as https://www.w3.org/TR/trace-context/ asks.
absl::StatusOr<jobs::CallContext> ReadCallContext(const ClientMetadata& metadata);

}  // namespace hopscope::rpc

#endif  // HOPSCOPE_SERVER_RPC_CALL_METADATA_H_

// The one place where connections get their security.
#ifndef HOPSCOPE_COMMON_RPC_CREDENTIALS_H_
#define HOPSCOPE_COMMON_RPC_CREDENTIALS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/address.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"

namespace hopscope::common {

struct ServerSecurity {
  // --allow_insecure: plain text on an address that other machines reach.
  bool allow_insecure = false;
};

// FAILED_PRECONDITION, reason INSECURE_ADDRESS, where other machines reach `address` and nothing
// protects it.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const ServerSecurity& security, const HostPort& address);

// Plain text.
std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials();

}  // namespace hopscope::common

#endif  // HOPSCOPE_COMMON_RPC_CREDENTIALS_H_

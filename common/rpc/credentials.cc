#include "common/rpc/credentials.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace hopscope::common {

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const ServerSecurity& security, const HostPort& address) {
  if (!security.allow_insecure && !IsLoopback(address.host)) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition, "INSECURE_ADDRESS",
        absl::StrCat("--listen: other machines can reach ", address.ToString(),
                     ", and connections are neither encrypted nor authenticated: listen on "
                     "127.0.0.1, or pass --allow_insecure where the network is trusted"),
        {{"field", "--listen"}, {"value", address.ToString()}});
  }
  return grpc::InsecureServerCredentials();
}

std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials() {
  return grpc::InsecureChannelCredentials();
}

}  // namespace hopscope::common

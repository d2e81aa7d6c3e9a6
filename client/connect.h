// Opens a connection to a server by its address.
#ifndef HOPSCOPE_CLIENT_CONNECT_H_
#define HOPSCOPE_CLIENT_CONNECT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/connection.h"
#include "client/metadata_stub.h"
#include "client/retrying_connection.h"

namespace hopscope::client {

struct ConnectOptions {
  // HOST:PORT. A name that stands for several addresses is used round robin.
  std::string server = "127.0.0.1:7070";
  // Plain text to an address that is not this machine's.
  bool allow_insecure = false;
  CallMetadata metadata;
  ConnectionOptions connection;
};

// Does not wait for the server: calls do. INVALID_ARGUMENT for an address that is none, or a tenant
// that cannot be sent; FAILED_PRECONDITION, reason INSECURE_ADDRESS, where allow_insecure is
// missing.
absl::StatusOr<std::unique_ptr<Connection>> Connect(ConnectOptions options);

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_CONNECT_H_

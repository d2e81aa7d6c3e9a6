#include "client/connect.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/address.h"
#include "common/rpc/credentials.h"
#include "common/rpc/transport.h"
#include "common/status.h"
#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"

namespace hopscope::client {
namespace {

// gRPC's own pauses between attempts to connect, which otherwise grow to two minutes: a client that
// waits for a server to come back should notice when it does.
constexpr int kFirstReconnectMs = 100;
constexpr int kLastReconnectMs = 2000;

constexpr absl::Duration kStateSlice = absl::Milliseconds(50);

// Pauses between tries, and goes on early where the channel has found a server meanwhile. Watching
// the channel is also what makes it connect: without an open call nobody else looks at its sockets.
void PauseWatching(grpc::Channel& channel, absl::Duration wait, Cancellation& cancellation) {
  const absl::Time end = absl::Now() + wait;
  if (channel.GetState(/*try_to_connect=*/true) == GRPC_CHANNEL_READY) {
    cancellation.WaitFor(wait);
    return;
  }
  while (!cancellation.cancelled()) {
    const absl::Time now = absl::Now();
    const grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
    if (now >= end || state == GRPC_CHANNEL_READY) return;
    channel.WaitForStateChange(state, absl::ToChronoTime(std::min(end, now + kStateSlice)));
  }
}

absl::Status CheckTenant(const std::string& tenant) {
  for (const char byte : tenant) {
    // What a gRPC metadata value may hold.
    if (!absl::ascii_isprint(byte)) {
      return common::InvalidField("BAD_TENANT", "tenant", absl::CHexEscape(tenant),
                                  "use printable ASCII");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> Connect(ConnectOptions options) {
  HOPSCOPE_ASSIGN_OR_RETURN(const common::HostPort address,
                            common::ParseHostPort("--server", options.server));
  if (address.port == 0) {
    return common::InvalidField("BAD_ADDRESS", "--server", options.server,
                                "the port must be 1 to 65535");
  }
  HOPSCOPE_RETURN_IF_ERROR(CheckTenant(options.metadata.tenant));
  const bool loopback = common::IsLoopback(address.host);
  if (!loopback && !options.allow_insecure) {
    return common::MakeError(
        absl::StatusCode::kFailedPrecondition, "INSECURE_ADDRESS",
        absl::StrCat("--server ", options.server,
                     " is another machine, and the connection is plain text that others on "
                     "the network can read and change; pass --allow_insecure where that is fine"),
        {{"field", "--server"}, {"value", options.server}});
  }
  grpc::ChannelArguments arguments = common::MakeChannelArguments();
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kLastReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLastReconnectMs);
  // A proxy does not reach this machine's loopback.
  if (loopback) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const std::shared_ptr<grpc::Channel> channel = grpc::CreateCustomChannel(
      absl::StrCat("dns:///", address.ToString()), common::MakeChannelCredentials(), arguments);
  if (!options.connection.pause) {
    options.connection.pause = [channel](absl::Duration wait, Cancellation& cancellation) {
      PauseWatching(*channel, wait, cancellation);
    };
  }
  return MakeConnection(MakeMetadataStub(MakeEvaluationStub(channel), std::move(options.metadata)),
                        std::move(options.connection));
}

}  // namespace hopscope::client

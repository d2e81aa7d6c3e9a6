// How Hopscope's programs use a connection: the limits and keepalive times that both ends must
// agree on.
#ifndef HOPSCOPE_COMMON_RPC_TRANSPORT_H_
#define HOPSCOPE_COMMON_RPC_TRANSPORT_H_

#include "absl/time/time.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/channel_arguments.h"

namespace hopscope::common {

// Largest message, either way. What may be larger is sent in pieces below 1 MiB.
inline constexpr int kMaxMessageBytes = 4 << 20;

// A client pings a connection with open calls that has been silent for so long...
inline constexpr absl::Duration kClientKeepaliveTime = absl::Seconds(30);
// ...and gives it up where no answer comes for so long.
inline constexpr absl::Duration kKeepaliveTimeout = absl::Seconds(10);
// A server closes connections that ping more often. Shorter than the client's time, so that a ping
// that the network delayed and the next one that it did not are no offence.
inline constexpr absl::Duration kServerMinPingInterval = absl::Seconds(15);
// A server pings silent connections too: a watcher whose machine is gone is forgotten.
inline constexpr absl::Duration kServerKeepaliveTime = absl::Seconds(60);

// A server asks a client that has been connected for so long to connect anew, so that new replicas
// get their share; calls that are still open then have the grace time to end. Streams resume.
inline constexpr absl::Duration kMaxConnectionAge = absl::Minutes(30);
inline constexpr absl::Duration kMaxConnectionAgeGrace = absl::Minutes(5);

// Open calls on one connection; further ones wait in the client.
inline constexpr int kMaxStreamsPerConnection = 1000;

// For every channel of Hopscope's own clients: message limits, keepalive, round_robin over all
// addresses of the name.
grpc::ChannelArguments MakeChannelArguments();

// The same for a server. The port is its own: a second server on it fails to start.
void ApplyTransportLimits(grpc::ServerBuilder& builder);

}  // namespace hopscope::common

#endif  // HOPSCOPE_COMMON_RPC_TRANSPORT_H_

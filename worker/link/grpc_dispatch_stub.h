// DispatchService over a gRPC channel.
#ifndef HOPSCOPE_WORKER_LINK_GRPC_DISPATCH_STUB_H_
#define HOPSCOPE_WORKER_LINK_GRPC_DISPATCH_STUB_H_

#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "worker/link/dispatch_stub.h"

namespace hopscope::link {

// A channel to HOST:PORT as the link wants it: it looks for a server that is away every second, so
// that workers are back soon after a restart.
std::shared_ptr<grpc::Channel> MakeDispatchChannel(const std::string& server);

std::unique_ptr<DispatchStub> MakeGrpcDispatchStub(std::shared_ptr<grpc::Channel> channel);

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_GRPC_DISPATCH_STUB_H_

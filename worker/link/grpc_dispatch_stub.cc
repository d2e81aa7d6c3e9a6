#include "worker/link/grpc_dispatch_stub.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/time/clock.h"
#include "common/rpc/credentials.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/transport.h"
#include "grpc/grpc.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "hopscope/v1/dispatch.grpc.pb.h"

namespace hopscope::link {
namespace {

constexpr int kFirstReconnectBackoffMs = 100;
constexpr int kMaxReconnectBackoffMs = 1000;
constexpr int kConnectTimeoutMs = 5000;

// A call waits so long for a connection before it fails: a little longer than the longest backoff.
constexpr absl::Duration kConnectPatience = absl::Milliseconds(1500);
// Such a wait looks at whether the call was cancelled this often.
constexpr absl::Duration kCancelPoll = absl::Milliseconds(100);

using Stub = v1::DispatchService::Stub;

class GrpcDispatchStub : public DispatchStub {
 public:
  explicit GrpcDispatchStub(std::shared_ptr<grpc::Channel> channel)
      : channel_(std::move(channel)), stub_(v1::DispatchService::NewStub(channel_)) {}

  absl::StatusOr<v1::RegisterWorkerResponse> RegisterWorker(
      const v1::RegisterWorkerRequest& request, Call* call) override {
    return Run<v1::RegisterWorkerResponse>(&Stub::RegisterWorker, request, call);
  }
  absl::StatusOr<v1::LeaseUnitsResponse> LeaseUnits(const v1::LeaseUnitsRequest& request,
                                                    Call* call) override {
    return Run<v1::LeaseUnitsResponse>(&Stub::LeaseUnits, request, call);
  }
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request,
                                                  Call* call) override {
    return Run<v1::HeartbeatResponse>(&Stub::Heartbeat, request, call);
  }
  absl::StatusOr<v1::ReportUnitResponse> ReportUnit(const v1::ReportUnitRequest& request,
                                                    Call* call) override {
    return Run<v1::ReportUnitResponse>(&Stub::ReportUnit, request, call);
  }
  absl::StatusOr<v1::FetchTokensResponse> FetchTokens(const v1::FetchTokensRequest& request,
                                                      Call* call) override {
    return Run<v1::FetchTokensResponse>(&Stub::FetchTokens, request, call);
  }

 private:
  template <class Response, class Request>
  absl::StatusOr<Response> Run(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                            Response*),
                               const Request& request, Call* call) {
    const absl::Time deadline = absl::Now() + call->timeout();
    AwaitConnection(std::min(deadline, absl::Now() + kConnectPatience), call);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(deadline));
    Response response;
    grpc::Status status;
    {
      const Call::Ending ending(call, [&context] { context.TryCancel(); });
      status = ((*stub_).*method)(&context, request, &response);
    }
    if (!status.ok()) return common::FromGrpcStatus(status);
    return response;
  }

  // A connection comes about only while some thread waits inside gRPC, which nobody does between
  // two calls that fail at once: without this, a server that was away would be found every 5 s.
  void AwaitConnection(absl::Time deadline, Call* call) {
    while (absl::Now() < deadline && !call->cancelled()) {
      const grpc_connectivity_state state = channel_->GetState(/*try_to_connect=*/true);
      if (state == GRPC_CHANNEL_READY) return;
      channel_->WaitForStateChange(
          state, absl::ToChronoTime(std::min(deadline, absl::Now() + kCancelPoll)));
    }
  }

  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace

std::shared_ptr<grpc::Channel> MakeDispatchChannel(const std::string& server) {
  grpc::ChannelArguments arguments = common::MakeChannelArguments();
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectBackoffMs);
  // In spite of its name, what a connection may take to come about.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectBackoffMs);
  return grpc::CreateCustomChannel(server, common::MakeChannelCredentials(), arguments);
}

std::unique_ptr<DispatchStub> MakeGrpcDispatchStub(std::shared_ptr<grpc::Channel> channel) {
  return std::make_unique<GrpcDispatchStub>(std::move(channel));
}

}  // namespace hopscope::link

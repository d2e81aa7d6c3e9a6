#include "worker/link/grpc_dispatch_stub.h"

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

constexpr int kMinReconnectBackoffMs = 100;
constexpr int kMaxReconnectBackoffMs = 1000;

class GrpcDispatchStub : public DispatchStub {
 public:
  explicit GrpcDispatchStub(std::shared_ptr<grpc::Channel> channel)
      : stub_(v1::DispatchService::NewStub(channel)) {}

  absl::StatusOr<v1::RegisterWorkerResponse> RegisterWorker(
      const v1::RegisterWorkerRequest& request, Call* call) override {
    return Run<v1::RegisterWorkerResponse>(&v1::DispatchService::Stub::RegisterWorker, request,
                                           call);
  }
  absl::StatusOr<v1::LeaseUnitsResponse> LeaseUnits(const v1::LeaseUnitsRequest& request,
                                                    Call* call) override {
    return Run<v1::LeaseUnitsResponse>(&v1::DispatchService::Stub::LeaseUnits, request, call);
  }
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request,
                                                  Call* call) override {
    return Run<v1::HeartbeatResponse>(&v1::DispatchService::Stub::Heartbeat, request, call);
  }
  absl::StatusOr<v1::ReportUnitResponse> ReportUnit(const v1::ReportUnitRequest& request,
                                                    Call* call) override {
    return Run<v1::ReportUnitResponse>(&v1::DispatchService::Stub::ReportUnit, request, call);
  }

 private:
  template <class Response, class Request>
  absl::StatusOr<Response> Run(grpc::Status (v1::DispatchService::Stub::*method)(
                                   grpc::ClientContext*, const Request&, Response*),
                               const Request& request, Call* call) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + call->timeout()));
    Response response;
    grpc::Status status;
    {
      const Call::Ending ending(call, [&context] { context.TryCancel(); });
      status = ((*stub_).*method)(&context, request, &response);
    }
    if (!status.ok()) return common::FromGrpcStatus(status);
    return response;
  }

  const std::unique_ptr<v1::DispatchService::Stub> stub_;
};

}  // namespace

std::shared_ptr<grpc::Channel> MakeDispatchChannel(const std::string& server) {
  grpc::ChannelArguments arguments = common::MakeChannelArguments();
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kMinReconnectBackoffMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kMinReconnectBackoffMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectBackoffMs);
  return grpc::CreateCustomChannel(server, common::MakeChannelCredentials(), arguments);
}

std::unique_ptr<DispatchStub> MakeGrpcDispatchStub(std::shared_ptr<grpc::Channel> channel) {
  return std::make_unique<GrpcDispatchStub>(std::move(channel));
}

}  // namespace hopscope::link

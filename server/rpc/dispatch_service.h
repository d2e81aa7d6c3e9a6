// DispatchService: how workers get units and hand results in. Thin: jobs::Dispatcher does the work,
// LongPoll the waiting.
#ifndef HOPSCOPE_SERVER_RPC_DISPATCH_SERVICE_H_
#define HOPSCOPE_SERVER_RPC_DISPATCH_SERVICE_H_

#include "absl/time/time.h"
#include "hopscope/v1/dispatch.grpc.pb.h"
#include "server/jobs/dispatcher.h"
#include "server/jobs/signals.h"
#include "server/jobs/uploaded_tokens.h"
#include "server/rpc/executor.h"
#include "server/rpc/runtime.h"

namespace hopscope::rpc {

// Thread-safe. No handler blocks.
class DispatchService : public v1::DispatchService::CallbackService {
 public:
  struct Options {
    // Longest that LeaseUnits waits, whatever the worker asks for.
    absl::Duration max_lease_wait = absl::Seconds(20);
    // The same for Heartbeat. Below the lease's duration: a heartbeat that waits renews nothing.
    absl::Duration max_heartbeat_wait = absl::Seconds(10);
    // Waiting workers that look for work at once when there may be some. What they look into is one
    // store, so that more would only queue there.
    int lease_tries_at_once = 4;
  };

  // All pointers must outlive the server that the service is registered with.
  DispatchService(Options options, Runtime* runtime, jobs::Dispatcher* dispatcher,
                  jobs::UploadedTokens* tokens, jobs::Signals* signals);

  grpc::ServerUnaryReactor* RegisterWorker(grpc::CallbackServerContext* context,
                                           const v1::RegisterWorkerRequest* request,
                                           v1::RegisterWorkerResponse* response) override;
  grpc::ServerUnaryReactor* LeaseUnits(grpc::CallbackServerContext* context,
                                       const v1::LeaseUnitsRequest* request,
                                       v1::LeaseUnitsResponse* response) override;
  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const v1::HeartbeatRequest* request,
                                      v1::HeartbeatResponse* response) override;
  grpc::ServerUnaryReactor* ReportUnit(grpc::CallbackServerContext* context,
                                       const v1::ReportUnitRequest* request,
                                       v1::ReportUnitResponse* response) override;
  grpc::ServerUnaryReactor* FetchTokens(grpc::CallbackServerContext* context,
                                        const v1::FetchTokensRequest* request,
                                        v1::FetchTokensResponse* response) override;

 private:
  const Options options_;
  Runtime& runtime_;
  jobs::Dispatcher* const dispatcher_;
  jobs::UploadedTokens* const tokens_;
  jobs::Signals* const signals_;
  ExecutorLane lease_lane_;
  ExecutorLane heartbeat_lane_;
};

}  // namespace hopscope::rpc

#endif  // HOPSCOPE_SERVER_RPC_DISPATCH_SERVICE_H_

// The server's DispatchService as the link sees it: blocking calls that return StatusOr. The real
// one is over gRPC (grpc_dispatch_stub.h), tests have a server of their own in memory
// (fake_dispatch_stub.h).
//
// Every call may be repeated safely. Errors are what the server said, with its ErrorInfo, or the
// transport's: UNAVAILABLE, DEADLINE_EXCEEDED after call->timeout(), CANCELLED after
// call->Cancel(). Thread-safe.
#ifndef HOPSCOPE_WORKER_LINK_DISPATCH_STUB_H_
#define HOPSCOPE_WORKER_LINK_DISPATCH_STUB_H_

#include "absl/status/statusor.h"
#include "hopscope/v1/dispatch.pb.h"
#include "worker/link/call.h"

namespace hopscope::link {

class DispatchStub {
 public:
  virtual ~DispatchStub() = default;

  virtual absl::StatusOr<v1::RegisterWorkerResponse> RegisterWorker(
      const v1::RegisterWorkerRequest& request, Call* call) = 0;
  virtual absl::StatusOr<v1::LeaseUnitsResponse> LeaseUnits(const v1::LeaseUnitsRequest& request,
                                                            Call* call) = 0;
  virtual absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request,
                                                          Call* call) = 0;
  virtual absl::StatusOr<v1::ReportUnitResponse> ReportUnit(const v1::ReportUnitRequest& request,
                                                            Call* call) = 0;
  virtual absl::StatusOr<v1::FetchTokensResponse> FetchTokens(const v1::FetchTokensRequest& request,
                                                              Call* call) = 0;
};

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_DISPATCH_STUB_H_

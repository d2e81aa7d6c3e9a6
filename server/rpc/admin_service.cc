#include "server/rpc/admin_service.h"

#include "server/rpc/unary.h"

namespace hopscope::rpc {

grpc::ServerUnaryReactor* AdminService::ListWorkers(grpc::CallbackServerContext* context,
                                                    const v1::ListWorkersRequest*,
                                                    v1::ListWorkersResponse*) {
  return RefuseUnary(runtime_, Method::kListWorkers, context);
}

grpc::ServerUnaryReactor* AdminService::DrainWorker(grpc::CallbackServerContext* context,
                                                    const v1::DrainWorkerRequest*,
                                                    v1::DrainWorkerResponse*) {
  return RefuseUnary(runtime_, Method::kDrainWorker, context);
}

grpc::ServerUnaryReactor* AdminService::UndrainWorker(grpc::CallbackServerContext* context,
                                                      const v1::UndrainWorkerRequest*,
                                                      v1::UndrainWorkerResponse*) {
  return RefuseUnary(runtime_, Method::kUndrainWorker, context);
}

grpc::ServerUnaryReactor* AdminService::GetQueueStatus(grpc::CallbackServerContext* context,
                                                       const v1::GetQueueStatusRequest*,
                                                       v1::GetQueueStatusResponse*) {
  return RefuseUnary(runtime_, Method::kGetQueueStatus, context);
}

}  // namespace hopscope::rpc

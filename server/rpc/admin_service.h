// AdminService: for operators.
#ifndef HOPSCOPE_SERVER_RPC_ADMIN_SERVICE_H_
#define HOPSCOPE_SERVER_RPC_ADMIN_SERVICE_H_

#include "hopscope/v1/admin.grpc.pb.h"
#include "server/rpc/runtime.h"

namespace hopscope::rpc {

// Answers UNIMPLEMENTED. Thread-safe. No handler blocks.
class AdminService : public v1::AdminService::CallbackService {
 public:
  // `runtime` must outlive the server that the service is registered with.
  explicit AdminService(Runtime* runtime) : runtime_(*runtime) {}

  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override;
  grpc::ServerUnaryReactor* DrainWorker(grpc::CallbackServerContext* context,
                                        const v1::DrainWorkerRequest* request,
                                        v1::DrainWorkerResponse* response) override;
  grpc::ServerUnaryReactor* UndrainWorker(grpc::CallbackServerContext* context,
                                          const v1::UndrainWorkerRequest* request,
                                          v1::UndrainWorkerResponse* response) override;
  grpc::ServerUnaryReactor* GetQueueStatus(grpc::CallbackServerContext* context,
                                           const v1::GetQueueStatusRequest* request,
                                           v1::GetQueueStatusResponse* response) override;

 private:
  Runtime& runtime_;
};

}  // namespace hopscope::rpc

#endif  // HOPSCOPE_SERVER_RPC_ADMIN_SERVICE_H_

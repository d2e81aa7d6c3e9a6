// EvaluationService: the public API. Thin: jobs::JobService does the work.
#ifndef HOPSCOPE_SERVER_RPC_EVALUATION_SERVICE_H_
#define HOPSCOPE_SERVER_RPC_EVALUATION_SERVICE_H_

#include "hopscope/v1/evaluation.grpc.pb.h"
#include "server/jobs/job_service.h"
#include "server/jobs/signals.h"
#include "server/rpc/runtime.h"

namespace hopscope::rpc {

// Thread-safe. No handler blocks.
class EvaluationService : public v1::EvaluationService::CallbackService {
 public:
  // All pointers must outlive the server that the service is registered with.
  EvaluationService(Runtime* runtime, jobs::JobService* jobs, jobs::Signals* signals)
      : runtime_(*runtime), jobs_(jobs), signals_(signals) {}

  // Refused while the server shuts down.
  grpc::ServerUnaryReactor* CreateEvalJob(grpc::CallbackServerContext* context,
                                          const v1::CreateEvalJobRequest* request,
                                          v1::CreateEvalJobResponse* response) override;
  grpc::ServerUnaryReactor* GetEvalJob(grpc::CallbackServerContext* context,
                                       const v1::GetEvalJobRequest* request,
                                       v1::GetEvalJobResponse* response) override;
  grpc::ServerUnaryReactor* ListEvalJobs(grpc::CallbackServerContext* context,
                                         const v1::ListEvalJobsRequest* request,
                                         v1::ListEvalJobsResponse* response) override;
  grpc::ServerWriteReactor<v1::WatchEvalJobResponse>* WatchEvalJob(
      grpc::CallbackServerContext* context, const v1::WatchEvalJobRequest* request) override;
  grpc::ServerUnaryReactor* CancelEvalJob(grpc::CallbackServerContext* context,
                                          const v1::CancelEvalJobRequest* request,
                                          v1::CancelEvalJobResponse* response) override;
  grpc::ServerUnaryReactor* PauseEvalJob(grpc::CallbackServerContext* context,
                                         const v1::PauseEvalJobRequest* request,
                                         v1::PauseEvalJobResponse* response) override;
  grpc::ServerUnaryReactor* ResumeEvalJob(grpc::CallbackServerContext* context,
                                          const v1::ResumeEvalJobRequest* request,
                                          v1::ResumeEvalJobResponse* response) override;
  grpc::ServerUnaryReactor* DeleteEvalJob(grpc::CallbackServerContext* context,
                                          const v1::DeleteEvalJobRequest* request,
                                          v1::DeleteEvalJobResponse* response) override;
  grpc::ServerUnaryReactor* RetryEvalJob(grpc::CallbackServerContext* context,
                                         const v1::RetryEvalJobRequest* request,
                                         v1::RetryEvalJobResponse* response) override;
  grpc::ServerUnaryReactor* ListEvalResults(grpc::CallbackServerContext* context,
                                            const v1::ListEvalResultsRequest* request,
                                            v1::ListEvalResultsResponse* response) override;
  grpc::ServerWriteReactor<v1::ExportEvalResultsResponse>* ExportEvalResults(
      grpc::CallbackServerContext* context, const v1::ExportEvalResultsRequest* request) override;
  grpc::ServerUnaryReactor* ListUnits(grpc::CallbackServerContext* context,
                                      const v1::ListUnitsRequest* request,
                                      v1::ListUnitsResponse* response) override;
  grpc::ServerReadReactor<v1::UploadTokensRequest>* UploadTokens(
      grpc::CallbackServerContext* context, v1::UploadTokensResponse* response) override;
  grpc::ServerUnaryReactor* GetCapabilities(grpc::CallbackServerContext* context,
                                            const v1::GetCapabilitiesRequest* request,
                                            v1::GetCapabilitiesResponse* response) override;
  grpc::ServerUnaryReactor* ListCheckpoints(grpc::CallbackServerContext* context,
                                            const v1::ListCheckpointsRequest* request,
                                            v1::ListCheckpointsResponse* response) override;

 private:
  Runtime& runtime_;
  jobs::JobService* const jobs_;
  jobs::Signals* const signals_;
};

}  // namespace hopscope::rpc

#endif  // HOPSCOPE_SERVER_RPC_EVALUATION_SERVICE_H_

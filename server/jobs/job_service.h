// The life of evaluation jobs: checked, planned and stored; listed, cancelled, and read. No gRPC in
// here: the RPC layer calls these methods on its executor and converts the status.
//
// Each method takes the request of the RPC of the same name and returns its response or the error
// that the API documents. Methods block on the store. Thread-safe.
#ifndef HOPSCOPE_SERVER_JOBS_JOB_SERVICE_H_
#define HOPSCOPE_SERVER_JOBS_JOB_SERVICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/model_root.h"
#include "common/clock.h"
#include "hopscope/v1/admin.pb.h"
#include "hopscope/v1/evaluation.pb.h"
#include "server/jobs/job_observer.h"
#include "server/jobs/plan_cache.h"
#include "server/jobs/progress_meter.h"
#include "server/jobs/signals.h"
#include "server/jobs/uploaded_tokens.h"
#include "server/store/store.h"

namespace hopscope::jobs {

// What came with a call besides its request.
struct CallContext {
  std::string tenant = "default";
  std::string traceparent;  // W3C trace context; may be empty
};

class JobService {
 public:
  struct Options {
    // Limits on specs; 0 in a field means the default of common/spec.
    v1::Limits limits;
    // Sequences that nobody needs are deleted so long after their last use.
    absl::Duration tokens_retention = absl::Hours(24);
    // May be null; must outlive the service.
    JobObserver* observer = nullptr;
  };

  // All pointers must outlive the service.
  JobService(Options options, store::Store* store, const checkpoint::ModelRoot* models,
             Signals* signals, const common::Clock* clock);
  ~JobService();

  absl::StatusOr<v1::CreateEvalJobResponse> CreateEvalJob(const v1::CreateEvalJobRequest& request,
                                                          const CallContext& context);
  absl::StatusOr<v1::GetEvalJobResponse> GetEvalJob(const v1::GetEvalJobRequest& request);
  absl::StatusOr<v1::ListEvalJobsResponse> ListEvalJobs(const v1::ListEvalJobsRequest& request);
  absl::StatusOr<v1::CancelEvalJobResponse> CancelEvalJob(const v1::CancelEvalJobRequest& request);
  absl::StatusOr<v1::ListEvalResultsResponse> ListEvalResults(
      const v1::ListEvalResultsRequest& request);
  absl::StatusOr<v1::GetCapabilitiesResponse> GetCapabilities(
      const v1::GetCapabilitiesRequest& request);
  absl::StatusOr<v1::ListCheckpointsResponse> ListCheckpoints(
      const v1::ListCheckpointsRequest& request);

  // Sequences of the users' own, for task "tokens".
  UploadedTokens& tokens() { return tokens_; }

  // Durable events of a job with sequence > after_sequence, in order: at most max_events of them
  // and about max_bytes. `finished` is true where the last event returned is JobFinished.
  // NOT_FOUND: no such job.
  struct EventPage {
    std::vector<v1::EvalEvent> events;
    bool finished = false;
  };
  absl::StatusOr<EventPage> ReadEvents(const std::string& job, int64_t after_sequence,
                                       int max_events, int64_t max_bytes);

 private:
  // The job that a tenant created with this request id, as CreateEvalJob answers; nothing where
  // there is none. ALREADY_EXISTS where its spec is another one.
  absl::StatusOr<std::optional<v1::CreateEvalJobResponse>> FindCreated(
      store::ReadTransaction& transaction, const v1::EvalJobSpec& spec,
      const std::string& request_id);
  const Options options_;
  store::Store* const store_;
  const checkpoint::ModelRoot* const models_;
  Signals* const signals_;
  const common::Clock* const clock_;
  UploadedTokens tokens_;
  PlanCache plans_;
  ProgressMeter progress_;
};

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_JOB_SERVICE_H_

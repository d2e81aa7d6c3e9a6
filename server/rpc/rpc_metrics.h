// Counts of RPCs for Prometheus: rpc_requests_total{method,code}, rpc_duration_seconds{method},
// watchers.
#ifndef HOPSCOPE_SERVER_RPC_RPC_METRICS_H_
#define HOPSCOPE_SERVER_RPC_RPC_METRICS_H_

#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ops/metric_table.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace hopscope::rpc {

// Every method of the three services, in the order of the proto files.
enum class Method {
  kCreateEvalJob,
  kGetEvalJob,
  kListEvalJobs,
  kWatchEvalJob,
  kCancelEvalJob,
  kPauseEvalJob,
  kResumeEvalJob,
  kDeleteEvalJob,
  kRetryEvalJob,
  kListEvalResults,
  kExportEvalResults,
  kListUnits,
  kUploadTokens,
  kGetCapabilities,
  kListCheckpoints,
  kRegisterWorker,
  kLeaseUnits,
  kHeartbeat,
  kReportUnit,
  kFetchTokens,
  kListWorkers,
  kDrainWorker,
  kUndrainWorker,
  kGetQueueStatus,
};

// "SERVICE/METHOD", such as "EvaluationService/CreateEvalJob", by Method.
absl::Span<const absl::string_view> MethodNames();
inline absl::string_view MethodName(Method method) {
  return MethodNames()[static_cast<size_t>(method)];
}

// Thread-safe.
class RpcMetrics {
 public:
  // The registry must outlive the metrics.
  explicit RpcMetrics(prometheus::Registry& registry);

  void Record(Method method, absl::StatusCode code, std::chrono::duration<double> duration);

  // Open WatchEvalJob streams.
  prometheus::Gauge& watchers() { return watchers_; }

 private:
  const ops::MetricTable<prometheus::Counter> requests_;
  const ops::MetricTable<prometheus::Histogram> durations_;
  prometheus::Gauge& watchers_;
};

}  // namespace hopscope::rpc

#endif  // HOPSCOPE_SERVER_RPC_RPC_METRICS_H_

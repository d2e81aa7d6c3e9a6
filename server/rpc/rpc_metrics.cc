#include "server/rpc/rpc_metrics.h"

#include <array>
#include <vector>

namespace hopscope::rpc {
namespace {

constexpr std::array<absl::string_view, 24> kMethodNames = {
    "EvaluationService/CreateEvalJob",
    "EvaluationService/GetEvalJob",
    "EvaluationService/ListEvalJobs",
    "EvaluationService/WatchEvalJob",
    "EvaluationService/CancelEvalJob",
    "EvaluationService/PauseEvalJob",
    "EvaluationService/ResumeEvalJob",
    "EvaluationService/DeleteEvalJob",
    "EvaluationService/RetryEvalJob",
    "EvaluationService/ListEvalResults",
    "EvaluationService/ExportEvalResults",
    "EvaluationService/ListUnits",
    "EvaluationService/UploadTokens",
    "EvaluationService/GetCapabilities",
    "EvaluationService/ListCheckpoints",
    "DispatchService/RegisterWorker",
    "DispatchService/LeaseUnits",
    "DispatchService/Heartbeat",
    "DispatchService/ReportUnit",
    "DispatchService/FetchTokens",
    "AdminService/ListWorkers",
    "AdminService/DrainWorker",
    "AdminService/UndrainWorker",
    "AdminService/GetQueueStatus",
};

ops::LabelAxis MethodAxis() {
  ops::LabelAxis axis{"method", {}};
  for (const absl::string_view name : kMethodNames) axis.values.emplace_back(name);
  return axis;
}

// All of gRPC's codes, which are abseil's, by number.
ops::LabelAxis CodeAxis() {
  ops::LabelAxis axis{"code", {}};
  for (int code = 0; code <= 16; ++code) {
    axis.values.push_back(absl::StatusCodeToString(static_cast<absl::StatusCode>(code)));
  }
  return axis;
}

// From a call that finds nothing to do to a long poll that runs its full time.
const prometheus::Histogram::BucketBoundaries kSeconds = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};

}  // namespace

absl::Span<const absl::string_view> MethodNames() { return kMethodNames; }

RpcMetrics::RpcMetrics(prometheus::Registry& registry)
    : requests_(prometheus::BuildCounter()
                    .Name("hopscope_rpc_requests_total")
                    .Help("RPCs that ended, by their status.")
                    .Register(registry),
                {MethodAxis(), CodeAxis()}),
      durations_(prometheus::BuildHistogram()
                     .Name("hopscope_rpc_duration_seconds")
                     .Help("Time from the start of an RPC to its status; long polls and streams "
                           "include their waiting.")
                     .Register(registry),
                 {MethodAxis()}, kSeconds),
      watchers_(prometheus::BuildGauge()
                    .Name("hopscope_watchers")
                    .Help("Open WatchEvalJob streams.")
                    .Register(registry)
                    .Add({})) {}

void RpcMetrics::Record(Method method, absl::StatusCode code,
                        std::chrono::duration<double> duration) {
  const size_t row = static_cast<size_t>(method);
  const size_t column = static_cast<size_t>(code) <= 16
                            ? static_cast<size_t>(code)
                            : static_cast<size_t>(absl::StatusCode::kUnknown);
  requests_.At({row, column}).Increment();
  durations_.At({row}).Observe(duration.count());
}

}  // namespace hopscope::rpc

// What happens to units and in the store, for Prometheus.
#ifndef HOPSCOPE_SERVER_JOB_METRICS_H_
#define HOPSCOPE_SERVER_JOB_METRICS_H_

#include "common/ops/metric_table.h"
#include "prometheus/counter.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "server/jobs/job_observer.h"
#include "server/store/store.h"

namespace hopscope::server {

// Labels take values of fixed sets, so that the number of series never changes. Thread-safe.
class JobMetrics : public jobs::JobObserver, public store::StoreObserver {
 public:
  // The registry must outlive the metrics.
  explicit JobMetrics(prometheus::Registry& registry);

  void OnUnitLeased(absl::Duration wait) override;
  void OnAttemptEnded(absl::string_view outcome, absl::Duration duration) override;
  void OnUnitEnded(absl::string_view outcome) override;
  void OnRetry(absl::string_view reason) override;
  void OnLeaseExpired() override;
  void OnItemsScored(absl::string_view task, int32_t hops, int32_t added_tokens, int64_t items,
                     int64_t correct) override;

  void OnOperation(absl::string_view operation, absl::Duration duration,
                   absl::StatusCode code) override;

 private:
  prometheus::Histogram& unit_wait_;
  const ops::MetricTable<prometheus::Histogram> unit_duration_;
  const ops::MetricTable<prometheus::Counter> units_completed_;
  const ops::MetricTable<prometheus::Counter> unit_retries_;
  prometheus::Counter& lease_expirations_;
  const ops::MetricTable<prometheus::Counter> items_scored_;
  const ops::MetricTable<prometheus::Counter> items_correct_;
  const ops::MetricTable<prometheus::Histogram> store_operations_;
};

}  // namespace hopscope::server

#endif  // HOPSCOPE_SERVER_JOB_METRICS_H_

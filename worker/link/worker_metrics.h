// What a worker shows on /metrics: hopscope_worker_* and hopscope_build_info.
//
// Series are fixed at construction: the only label that varies with the engine is the scorer, over
// those that it knows. Thread-safe.
#ifndef HOPSCOPE_WORKER_LINK_WORKER_METRICS_H_
#define HOPSCOPE_WORKER_LINK_WORKER_METRICS_H_

#include <memory>

#include "common/clock.h"
#include "common/ops/metric_table.h"
#include "hopscope/v1/dispatch.pb.h"
#include "prometheus/collectable.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "worker/engine/engine.h"
#include "worker/link/busy_meter.h"

namespace hopscope::link {

class WorkerMetrics : public prometheus::Collectable {
 public:
  // `description` is the engine's own. The pointers must outlive the metrics.
  WorkerMetrics(const v1::WorkerDescription& description, const engine::Engine* engine,
                const common::Clock* clock);

  // Around each run.
  void BeginRun() { busy_.BeginRun(); }
  void EndRun(const engine::RunStatistics& statistics);

  // Asks the engine for what is loaded.
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const engine::Engine* const engine_;
  mutable BusyMeter busy_;
  prometheus::Registry registry_;
  prometheus::Counter& sequences_;
  prometheus::Counter& tokens_;
  prometheus::Histogram& forward_seconds_;
  ops::MetricTable<prometheus::Histogram> score_seconds_;  // by scorer
  prometheus::Histogram& model_load_seconds_;
  prometheus::Gauge& busy_ratio_;
  ops::MetricTable<prometheus::Gauge> memory_bytes_;  // by kind
  prometheus::Gauge& checkpoint_cache_bytes_;
};

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_WORKER_METRICS_H_

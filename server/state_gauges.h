// Jobs, units and workers by state, as they are when Prometheus asks.
#ifndef HOPSCOPE_SERVER_STATE_GAUGES_H_
#define HOPSCOPE_SERVER_STATE_GAUGES_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"
#include "server/store/rows.h"

namespace hopscope::server {

// Shows jobs{state}, units{state} and workers{state,device}, every state from 0. They are read from
// the shared store, so that all replicas show the same; where that fails they are absent rather
// than old. Thread-safe.
class StateGauges : public prometheus::Collectable {
 public:
  using Count = std::function<absl::StatusOr<store::StateCounts>()>;

  // `count` is called for each scrape, and may block.
  explicit StateGauges(Count count) : count_(std::move(count)) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const Count count_;
};

}  // namespace hopscope::server

#endif  // HOPSCOPE_SERVER_STATE_GAUGES_H_

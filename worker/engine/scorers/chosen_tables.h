// The tables of a scorer that makes only the metrics it was asked for.
//
// Values of different items may be set at once.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_CHOSEN_TABLES_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_CHOSEN_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "worker/engine/scorers/scorer.h"

namespace hopscope::engine {

class ChosenTables {
 public:
  // Fills `tables` with one for each metric that `spec`, normalized, yields. `all` names the
  // scorer's metrics; a metric is spoken of by its place there. `tables` and `failures` must
  // outlive the object.
  ChosenTables(const v1::ScorerSpec& spec, absl::Span<const char* const> all,
               const MetricTable::Axes& axes, int64_t items, std::vector<MetricTable>* tables,
               ItemFailures* failures);

  bool has(size_t metric) const { return places_[metric] >= 0; }

  // Does nothing where the metric was not asked for. A value that is NaN or infinite fails the
  // item.
  void Set(size_t metric, int64_t item, int64_t layer, int64_t head, double value) const {
    Set(metric, item, layer, head, /*plane=*/0, value);
  }
  void Set(size_t metric, int64_t item, int64_t layer, int64_t head, int64_t plane,
           double value) const;

 private:
  std::vector<int> places_;  // in `tables_`; -1: not asked for
  std::vector<MetricTable>& tables_;
  ItemFailures& failures_;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_CHOSEN_TABLES_H_

#include "worker/engine/scorers/chosen_tables.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/spec/catalog.h"
#include "common/spec/scorer_params.h"

namespace hopscope::engine {

ChosenTables::ChosenTables(const v1::ScorerSpec& spec, absl::Span<const char* const> all,
                           const MetricTable::Axes& axes, int64_t items,
                           std::vector<MetricTable>* tables, ItemFailures* failures)
    : places_(all.size(), -1), tables_(*tables), failures_(*failures) {
  const google::protobuf::Struct params = spec::ResultParams(spec).front();
  for (const std::string& metric : spec::ResultMetrics(spec)) {
    const auto place = std::find(all.begin(), all.end(), metric);
    if (place != all.end()) {
      places_[place - all.begin()] = static_cast<int>(tables_.size());
    }
    tables_.emplace_back(metric, params, axes, items);
  }
}

void ChosenTables::Set(size_t metric, int64_t item, int64_t layer, int64_t head, int64_t plane,
                       double value) const {
  if (!has(metric)) return;
  MetricTable& table = tables_[places_[metric]];
  const MetricTable::Axes& axes = table.axes();
  table.item(item)[(layer * axes.heads + head) * std::max(axes.planes, 1) + plane] = value;
  if (!std::isfinite(value)) {
    failures_.Fail(item, absl::StrCat(table.metric(), " of layer ", layer, " head ", head,
                                      " is NaN or infinite"));
  }
}

}  // namespace hopscope::engine

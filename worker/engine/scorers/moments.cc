#include "worker/engine/scorers/moments.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace hopscope::engine {

v1::ScoreMoments MomentsOf(absl::string_view scorer, const MetricTable& table,
                           const ItemFailures& failures) {
  const int64_t cells = table.cells();
  std::vector<int64_t> count(cells, 0);
  std::vector<double> mean(cells, 0);
  std::vector<double> m2(cells, 0);
  std::vector<double> min(table.extremes() ? cells : 0, 0);
  std::vector<double> max(min.size(), 0);
  for (int64_t item = 0; item < table.items(); ++item) {
    if (failures.failed(item)) continue;
    const double* const values = table.item(item);
    for (int64_t cell = 0; cell < cells; ++cell) {
      const double value = values[cell];
      if (std::isnan(value)) continue;
      const double deviation = value - mean[cell];
      mean[cell] += deviation / static_cast<double>(++count[cell]);
      m2[cell] += deviation * (value - mean[cell]);
      if (!table.extremes()) continue;
      min[cell] = count[cell] == 1 ? value : std::min(min[cell], value);
      max[cell] = count[cell] == 1 ? value : std::max(max[cell], value);
    }
  }
  v1::ScoreMoments moments;
  moments.set_scorer(std::string(scorer));
  *moments.mutable_params() = table.params();
  moments.set_metric(table.metric());
  moments.set_steps(table.axes().steps);
  moments.set_layers(table.axes().layers);
  moments.set_heads(table.axes().heads);
  moments.set_planes(table.axes().planes);
  moments.mutable_count()->Add(count.begin(), count.end());
  moments.mutable_mean()->Add(mean.begin(), mean.end());
  moments.mutable_m2()->Add(m2.begin(), m2.end());
  moments.mutable_min()->Add(min.begin(), min.end());
  moments.mutable_max()->Add(max.begin(), max.end());
  return moments;
}

}  // namespace hopscope::engine

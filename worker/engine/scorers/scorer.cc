#include "worker/engine/scorers/scorer.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace hopscope::engine {

MetricTable::MetricTable(std::string metric, google::protobuf::Struct params, Axes axes,
                         int64_t items, bool extremes)
    : metric_(std::move(metric)),
      params_(std::move(params)),
      axes_(axes),
      items_(items),
      cells_(int64_t{std::max(axes.steps, 1)} * std::max(axes.layers, 1) * std::max(axes.heads, 1) *
             std::max(axes.planes, 1)),
      extremes_(extremes),
      values_(items * cells_, std::numeric_limits<double>::quiet_NaN()) {}

}  // namespace hopscope::engine

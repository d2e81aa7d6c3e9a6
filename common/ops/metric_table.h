// A metric family over a fixed product of label values: every series exists from the start at 0,
// none is ever added, and events reach theirs without a look-up in the family.
//
//   MetricTable<prometheus::Counter> requests(
//       prometheus::BuildCounter().Name("hopscope_requests_total").Help("Requests.").Register(registry),
//       {{"method", {"Get", "List"}}, {"code", {"OK", "other"}}});
//   requests.For({"Get", "OK"}).Increment();
//
// Lives no longer than its registry. Thread-safe, as the metrics are.
#ifndef HOPSCOPE_COMMON_OPS_METRIC_TABLE_H_
#define HOPSCOPE_COMMON_OPS_METRIC_TABLE_H_

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "prometheus/family.h"
#include "prometheus/labels.h"

namespace hopscope::ops {

// A label and the values that it takes.
struct LabelAxis {
  std::string name;
  // What is not among them counts as the last one; where values come from outside, let that be
  // "other".
  std::vector<std::string> values;
};

// Position of a value on its axis.
size_t IndexOnAxis(const LabelAxis& axis, absl::string_view value);

template <class Metric>
class MetricTable {
 public:
  // `arguments` make each metric: a histogram's bucket boundaries. Axes have at least one value
  // each.
  template <class... Arguments>
  MetricTable(prometheus::Family<Metric>& family, std::vector<LabelAxis> axes,
              const Arguments&... arguments)
      : axes_(std::move(axes)) {
    size_t size = 1;
    for (const LabelAxis& axis : axes_) size *= axis.values.size();
    metrics_.reserve(size);
    for (size_t i = 0; i < size; ++i) {
      prometheus::Labels labels;
      size_t rest = i;
      for (size_t a = axes_.size(); a-- > 0; rest /= axes_[a].values.size()) {
        labels[axes_[a].name] = axes_[a].values[rest % axes_[a].values.size()];
      }
      metrics_.push_back(&family.Add(labels, arguments...));
    }
  }

  // By position of the values on the axes.
  Metric& At(absl::Span<const size_t> indices) const {
    size_t i = 0;
    for (size_t a = 0; a < axes_.size(); ++a) i = i * axes_[a].values.size() + indices[a];
    return *metrics_[i];
  }
  Metric& At(std::initializer_list<size_t> indices) const {
    return At(absl::MakeConstSpan(indices.begin(), indices.size()));
  }

  // By the values, one an axis.
  Metric& For(std::initializer_list<absl::string_view> values) const {
    size_t i = 0;
    size_t a = 0;
    for (const absl::string_view value : values) {
      i = i * axes_[a].values.size() + IndexOnAxis(axes_[a], value);
      ++a;
    }
    return *metrics_[i];
  }

 private:
  const std::vector<LabelAxis> axes_;
  std::vector<Metric*> metrics_;
};

}  // namespace hopscope::ops

#endif  // HOPSCOPE_COMMON_OPS_METRIC_TABLE_H_

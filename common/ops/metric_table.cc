#include "common/ops/metric_table.h"

namespace hopscope::ops {

size_t IndexOnAxis(const LabelAxis& axis, absl::string_view value) {
  for (size_t i = 0; i + 1 < axis.values.size(); ++i) {
    if (axis.values[i] == value) return i;
  }
  return axis.values.size() - 1;
}

}  // namespace hopscope::ops

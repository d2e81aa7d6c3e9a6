// Which items of its cell a unit holds.
//
// Pure functions; thread-safe.
#ifndef HOPSCOPE_SERVER_JOBS_UNIT_RANGE_H_
#define HOPSCOPE_SERVER_JOBS_UNIT_RANGE_H_

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "server/store/rows.h"

namespace hopscope::jobs {

struct ItemRange {
  int64_t first = 0;
  int64_t count = 0;
};

// `unit` is one of the cell's, and `plan` its job's.
inline ItemRange RangeOf(const store::JobPlanRow& plan, const store::CellRow& cell, int64_t unit) {
  if (cell.cut_units == 0) {
    const int64_t first = unit * cell.items_per_unit;
    return {.first = first, .count = std::min(cell.items_per_unit, cell.items - first)};
  }
  const auto cut =
      std::lower_bound(plan.cuts.begin(), plan.cuts.end(), cell,
                       [](const store::CutRow& a, const store::CellRow& b) {
                         return std::tie(a.task, a.checkpoint) < std::tie(b.task, b.checkpoint);
                       });
  const int64_t first = unit == 0 ? 0 : cut->ends[unit - 1];
  return {.first = first, .count = cut->ends[unit] - first};
}

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_UNIT_RANGE_H_

// Whether what a worker reported can be the result of its unit. A result that cannot fails the
// attempt: nothing wrong is merged into a cell.
//
// Pure functions; thread-safe.
#ifndef HOPSCOPE_SERVER_JOBS_PLAUSIBILITY_H_
#define HOPSCOPE_SERVER_JOBS_PLAUSIBILITY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "hopscope/v1/dispatch.pb.h"
#include "hopscope/v1/evaluation.pb.h"
#include "server/store/rows.h"

namespace hopscope::jobs {

// Checks that the counts add up to item_count; that there is one score for each metric of each
// scorer that was asked for (and each value of its parameters that list several), and no other;
// that their shapes fit the model; and that means and sums of squares are numbers that the counts
// allow. `task` is the unit's, at its length (spec::TaskAtLength). INTERNAL says what is wrong.
absl::Status CheckUnitResult(const v1::UnitResult& result, int64_t item_count,
                             const v1::TaskSpec& task, const store::CheckpointRow& checkpoint);

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_PLAUSIBILITY_H_

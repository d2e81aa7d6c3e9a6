// Count, mean and sum of squared deviations of a metric over the items of a unit, and its extremes
// where the metric asks for them.
//
// Items are taken in, one after the other, in their order (Welford's recurrence; Technometrics 4,
// 1962), so the result does not depend on which thread made which value.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_MOMENTS_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_MOMENTS_H_

#include "absl/strings/string_view.h"
#include "hopscope/v1/dispatch.pb.h"
#include "worker/engine/scorers/scorer.h"

namespace hopscope::engine {

// Failed items, and cells without a value, are left out.
v1::ScoreMoments MomentsOf(absl::string_view scorer, const MetricTable& table,
                           const ItemFailures& failures);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_MOMENTS_H_

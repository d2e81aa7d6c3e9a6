// What becomes of a worker's report.
//
// The first result of a unit wins. An attempt that holds its unit's lease may complete it, fail, or
// hand it back; one that lost the lease may still complete the unit while that waits in the queue,
// and nothing else. A part that comes again changes nothing.
#ifndef HOPSCOPE_SERVER_JOBS_REPORTING_H_
#define HOPSCOPE_SERVER_JOBS_REPORTING_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "hopscope/v1/dispatch.pb.h"
#include "server/jobs/effects.h"
#include "server/jobs/names.h"
#include "server/jobs/plan_cache.h"
#include "server/store/store.h"

namespace hopscope::jobs {

// Checks what can be checked without the store. Returns the attempt that the report is about.
// INVALID_ARGUMENT names the field.
absl::StatusOr<AttemptName> CheckReport(const v1::ReportUnitRequest& request);

// Applies a report that passed CheckReport. NOT_FOUND: no such attempt was ever given;
// FAILED_PRECONDITION: it was given to another worker. Other errors are the store's.
absl::StatusOr<v1::ReportUnitResponse::Disposition> ApplyReport(
    store::Transaction& transaction, PlanCache& plans, Effects& effects,
    const v1::ReportUnitRequest& request, const AttemptName& name, int max_attempts,
    absl::Time now);

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_REPORTING_H_

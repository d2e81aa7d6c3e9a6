// The filter and order of ListEvalJobs.
//
// A filter is a list of comparisons joined by AND:
//   state=RUNNING
//   label.KEY=VALUE
//   create_time>=2026-01-01T00:00:00Z    (also <, <=, >; RFC 3339)
// A value with spaces or quotes stands in double quotes, with \" and \\ inside.
//
// Pure functions; thread-safe.
#ifndef HOPSCOPE_SERVER_JOBS_LIST_FILTER_H_
#define HOPSCOPE_SERVER_JOBS_LIST_FILTER_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/store/rows.h"

namespace hopscope::jobs {

// Adds the filter's conditions to the query. INVALID_ARGUMENT (FILTER_INVALID) names what is wrong.
absl::Status ParseFilter(absl::string_view filter, store::JobQuery& query);

// "create_time desc" (also when empty) or "create_time". INVALID_ARGUMENT (ORDER_INVALID).
absl::Status ParseOrder(absl::string_view order_by, store::JobQuery& query);

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_LIST_FILTER_H_

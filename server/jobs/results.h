// Results of cells as the API shows them, page by page.
#ifndef HOPSCOPE_SERVER_JOBS_RESULTS_H_
#define HOPSCOPE_SERVER_JOBS_RESULTS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "hopscope/v1/evaluation.pb.h"
#include "server/store/store.h"

namespace hopscope::jobs {

// A cell as the API names it.
v1::Cell DescribeCell(const store::JobPlanRow& plan, const store::CellRow& cell);

// What a cell found about answers, in the units that are merged so far.
v1::CellResult MakeCellResult(const store::JobPlanRow& plan, const store::CellRow& cell);

// A place in the list of a job's results: each finished cell is row 0, and its metrics are rows 1,
// 2, ...
struct ResultCursor {
  int32_t cell = 0;
  int32_t row = 0;
};

struct ResultPage {
  v1::ListEvalResultsResponse response;  // without its token
  bool more = false;
  ResultCursor next;  // where the next page begins
};

// Rows from `from` on: at most max_rows, and as many as stay below max_bytes, but at least one.
absl::StatusOr<ResultPage> ReadResults(store::ReadTransaction& transaction,
                                       const store::JobRow& job, const store::JobPlanRow& plan,
                                       ResultCursor from, int max_rows, int64_t max_bytes,
                                       bool cells_only);

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_RESULTS_H_

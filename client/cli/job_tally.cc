#include "client/cli/job_tally.h"

#include <algorithm>

namespace hopscope::cli {

JobTally::JobTally(const v1::EvalJob& job, bool replayed)
    : state_(job.state()),
      cells_(job.totals().cells()),
      items_(job.totals().items()),
      several_seeds_(job.spec().seeds_size() > 1) {
  if (replayed) return;
  cells_completed_ = job.totals().cells_completed();
  cells_failed_ = job.totals().cells_failed();
  items_done_ = job.totals().items_completed();
}

void JobTally::Add(const v1::EvalEvent& event) {
  switch (event.kind_case()) {
    case v1::EvalEvent::kJobStateChanged:
      state_ = event.job_state_changed().state();
      break;
    case v1::EvalEvent::kCellCompleted: {
      const v1::CellResult& result = event.cell_completed().result();
      (result.state() == v1::CellResult::STATE_FAILED ? cells_failed_ : cells_completed_) += 1;
      // Durable events alone, as a replay gives them, must add up too.
      items_of_ended_cells_ += result.items() + result.items_failed();
      items_done_ = std::max(items_done_, items_of_ended_cells_);
      break;
    }
    case v1::EvalEvent::kUnitFailed:
      ++attempts_failed_;
      break;
    case v1::EvalEvent::kWorkerLost:
      ++workers_lost_;
      break;
    case v1::EvalEvent::kCellProgress:
      // Progress lags behind where cells ended meanwhile.
      items_done_ = std::max(items_done_, event.cell_progress().job_items_done());
      items_ = std::max(items_, event.cell_progress().job_items_total());
      items_per_second_ = event.cell_progress().items_per_second();
      break;
    case v1::EvalEvent::kJobFinished: {
      const v1::JobTotals& totals = event.job_finished().totals();
      state_ = event.job_finished().state();
      cells_ = totals.cells();
      cells_completed_ = totals.cells_completed();
      cells_failed_ = totals.cells_failed();
      items_ = totals.items();
      items_done_ = totals.items_completed();
      break;
    }
    default:
      break;
  }
}

}  // namespace hopscope::cli

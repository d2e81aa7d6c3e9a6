// EventText of progress_view.h.
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/number_text.h"
#include "client/cli/progress_view.h"
#include "client/job_state.h"

namespace hopscope::cli {
namespace {

std::string CellText(const v1::Cell& cell, const JobTally& tally) {
  if (!cell.tokens_digest().empty()) {
    return absl::StrCat(cell.task(), " ", ShortDigest(cell.tokens_digest()), ", ",
                        cell.checkpoint());
  }
  return absl::StrCat(cell.task(), " hops ", cell.hops(), " +", cell.added_tokens(), " tokens, ",
                      cell.checkpoint(),
                      tally.several_seeds() ? absl::StrCat(", seed ", cell.seed()) : "");
}

std::string FailureText(const v1::Failure& failure) {
  return absl::StrCat(failure.reason(), failure.message().empty() ? "" : ": ", failure.message());
}

std::string CellCompletedText(const v1::CellResult& result, const JobTally& tally) {
  const std::string count = absl::StrCat("cell ", tally.cells_ended(), "/", tally.cells(), "  ");
  if (result.state() == v1::CellResult::STATE_FAILED) {
    return absl::StrCat(count, CellText(result.cell(), tally), ": FAILED, ",
                        FailureText(result.failure()));
  }
  return absl::StrCat(
      count, CellText(result.cell(), tally),
      result.has_accuracy() ? absl::StrCat(": accuracy ", Fixed(result.accuracy(), 4))
                            : ": done, no labels",
      result.has_standard_error() ? absl::StrCat(" \xc2\xb1", Fixed(result.standard_error(), 4))
                                  : "",
      " (n=", Count(result.items()),
      result.items_failed() > 0
          ? absl::StrCat(", ", Count(result.items_failed()), " without a result")
          : "",
      ")");
}

std::string FinishedText(const v1::JobFinished& finished) {
  const v1::JobTotals& totals = finished.totals();
  std::string text = absl::StrCat(
      "job ", client::StateName(finished.state()), ": ", Counted(totals.cells_completed(), "cell"),
      " of ", Count(totals.cells()), ", ", Counted(totals.items_completed(), "sequence"));
  if (totals.cells_failed() > 0)
    absl::StrAppend(&text, ", ", Counted(totals.cells_failed(), "cell"), " failed");
  if (finished.has_failure()) absl::StrAppend(&text, "; ", FailureText(finished.failure()));
  return text;
}

}  // namespace

std::string EventText(const v1::EvalEvent& event, const JobTally& tally) {
  switch (event.kind_case()) {
    case v1::EvalEvent::kJobStateChanged: {
      // A job begins as PENDING, and its end has an event of its own.
      const v1::EvalJob::State state = event.job_state_changed().state();
      if (state == v1::EvalJob::STATE_PENDING || client::IsFinal(state)) return "";
      return absl::StrCat("job ", client::StateName(state));
    }
    case v1::EvalEvent::kCellCompleted:
      return CellCompletedText(event.cell_completed().result(), tally);
    case v1::EvalEvent::kUnitFailed: {
      const v1::UnitFailed& failed = event.unit_failed();
      return absl::StrCat("attempt ", failed.attempt(), " at unit ", failed.unit().unit_index(),
                          " of cell ", failed.unit().cell_index(), " failed on ", failed.worker(),
                          ", ", FailureText(failed.failure()),
                          failed.will_retry() ? "; trying again" : "; giving up");
    }
    case v1::EvalEvent::kWorkerLost: {
      const v1::WorkerLost& lost = event.worker_lost();
      return absl::StrCat(
          "worker lost: ", lost.worker(),
          lost.description().empty() ? "" : absl::StrCat(" (", lost.description(), ")"), "; ",
          Counted(lost.units_size(), "unit"), " back in the queue");
    }
    case v1::EvalEvent::kWarning:
      return absl::StrCat("warning: ", event.warning().message());
    case v1::EvalEvent::kJobFinished:
      return FinishedText(event.job_finished());
    default:
      return "";
  }
}

}  // namespace hopscope::cli

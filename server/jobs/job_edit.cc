#include "server/jobs/job_edit.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status.h"
#include "server/jobs/failures.h"
#include "server/jobs/merge.h"
#include "server/jobs/names.h"
#include "server/jobs/proto_time.h"
#include "server/jobs/required.h"
#include "server/jobs/results.h"

namespace hopscope::jobs {
namespace {

// Results that are merged at a time, so that few are in memory.
constexpr int kMergeBatch = 64;

v1::UnitRef RefOf(const store::UnitKey& unit) {
  v1::UnitRef ref;
  ref.set_cell_index(unit.cell);
  ref.set_unit_index(unit.unit);
  return ref;
}

}  // namespace

bool HasEnded(v1::EvalJob::State state) {
  switch (state) {
    case v1::EvalJob::STATE_SUCCEEDED:
    case v1::EvalJob::STATE_FAILED:
    case v1::EvalJob::STATE_CANCELLED:
    case v1::EvalJob::STATE_PARTIALLY_SUCCEEDED:
      return true;
    default:
      return false;
  }
}

JobEdit::JobEdit(store::Transaction& transaction, Effects& effects, store::JobRow job,
                 std::shared_ptr<const store::JobPlanRow> plan, absl::Time now)
    : transaction_(transaction),
      effects_(effects),
      job_(std::move(job)),
      plan_(std::move(plan)),
      now_(now),
      name_(JobName(job_.id)) {}

absl::Status JobEdit::AppendEvent(v1::EvalEvent event) {
  event.set_sequence(++job_.last_sequence);
  *event.mutable_time() = ToTimestamp(now_);
  effects_.JobHasEvents(name_);
  return transaction_.InsertEvent(job_.key, event);
}

absl::Status JobEdit::SetState(v1::EvalJob::State state) {
  v1::EvalEvent event;
  event.mutable_job_state_changed()->set_previous(job_.state);
  event.mutable_job_state_changed()->set_state(state);
  job_.state = state;
  return AppendEvent(std::move(event));
}

absl::StatusOr<store::AttemptRow> JobEdit::Lease(store::UnitRow unit, bool is_new,
                                                 const store::WorkerRow& worker,
                                                 absl::Duration lease_duration) {
  if (job_.state == v1::EvalJob::STATE_PENDING) {
    job_.start_time = now_;
    HOPSCOPE_RETURN_IF_ERROR(SetState(v1::EvalJob::STATE_RUNNING));
  }
  unit.state = v1::Unit::STATE_LEASED;
  ++unit.attempts;
  HOPSCOPE_RETURN_IF_ERROR(is_new ? transaction_.InsertUnit(unit) : transaction_.UpdateUnit(unit));
  store::AttemptRow attempt;
  attempt.unit = unit.key;
  attempt.number = unit.attempts;
  attempt.nonce = RandomNonce();
  attempt.worker = worker.id;
  attempt.start_time = now_;
  attempt.lease_expiry = now_ + lease_duration;
  HOPSCOPE_RETURN_IF_ERROR(transaction_.InsertAttempt(attempt));
  --job_.queued_units;
  ++job_.leased_units;
  effects_.Observe([wait = now_ - unit.queued_time](JobObserver& o) { o.OnUnitLeased(wait); });
  if (effects_.IsWatched(name_)) {
    v1::EvalEvent event;
    event.set_job(name_);
    *event.mutable_time() = ToTimestamp(now_);
    *event.mutable_unit_started()->mutable_unit() = RefOf(unit.key);
    event.mutable_unit_started()->set_worker(worker.id);
    event.mutable_unit_started()->set_attempt(attempt.number);
    effects_.Live(std::move(event));
  }
  return attempt;
}

absl::Status JobEdit::EndAttempt(store::AttemptRow attempt, store::UnitRow unit,
                                 store::AttemptState end_state, const v1::Failure& failure,
                                 bool counts, int max_attempts) {
  attempt.state = end_state;
  attempt.end_time = now_;
  attempt.lease_expiry.reset();
  attempt.failure = failure;
  HOPSCOPE_RETURN_IF_ERROR(transaction_.UpdateAttempt(attempt));
  // Of a lost attempt, further parts may still come.
  if (end_state != store::AttemptState::kLost) {
    HOPSCOPE_RETURN_IF_ERROR(transaction_.DeleteReportParts(unit.key, attempt.number));
  }
  --job_.leased_units;
  if (counts) ++unit.failed_attempts;
  const bool retry = unit.failed_attempts < max_attempts;
  unit.state = retry ? v1::Unit::STATE_QUEUED : v1::Unit::STATE_FAILED;
  if (retry) {
    unit.queued_time = now_;
    ++job_.queued_units;
    effects_.WorkAppeared();
  } else {
    job_.totals.set_units_failed(job_.totals.units_failed() + 1);
    effects_.Observe([](JobObserver& o) { o.OnUnitEnded("failed"); });
  }
  HOPSCOPE_RETURN_IF_ERROR(transaction_.UpdateUnit(unit));
  ObserveAttemptEnd(attempt, end_state == store::AttemptState::kHandedBack ? "handed_back"
                             : end_state == store::AttemptState::kLost     ? "lost"
                                                                           : "failed");
  if (failure.reason().empty()) return absl::OkStatus();

  v1::EvalEvent event;
  *event.mutable_unit_failed()->mutable_unit() = RefOf(unit.key);
  event.mutable_unit_failed()->set_attempt(attempt.number);
  event.mutable_unit_failed()->set_worker(attempt.worker);
  *event.mutable_unit_failed()->mutable_failure() = failure;
  event.mutable_unit_failed()->set_will_retry(retry);
  HOPSCOPE_RETURN_IF_ERROR(AppendEvent(std::move(event)));
  if (retry) {
    effects_.Observe([reason = failure.reason()](JobObserver& o) { o.OnRetry(reason); });
    return absl::OkStatus();
  }
  HOPSCOPE_ASSIGN_OR_RETURN(store::CellRow cell,
                            Required(transaction_.GetCell(job_.key, unit.key.cell), "cell"));
  return FailCell(std::move(cell), failure);
}

absl::Status JobEdit::Complete(store::AttemptRow attempt, store::UnitRow unit, store::CellRow cell,
                               const v1::UnitResult& result, absl::string_view worker_kind,
                               int64_t item_count) {
  const bool held_lease = attempt.lease_expiry.has_value();
  attempt.state = store::AttemptState::kCompleted;
  attempt.end_time = now_;
  attempt.lease_expiry.reset();
  attempt.failure.Clear();
  HOPSCOPE_RETURN_IF_ERROR(transaction_.UpdateAttempt(attempt));
  unit.state = v1::Unit::STATE_COMPLETED;
  HOPSCOPE_RETURN_IF_ERROR(transaction_.UpdateUnit(unit));
  HOPSCOPE_RETURN_IF_ERROR(transaction_.DeleteReportParts(unit.key, std::nullopt));
  --(held_lease ? job_.leased_units : job_.queued_units);

  v1::JobTotals& totals = job_.totals;
  totals.set_units_completed(totals.units_completed() + 1);
  totals.set_items_completed(totals.items_completed() + item_count);
  totals.set_items_failed(totals.items_failed() + result.items_failed());
  ++cell.units_completed;
  cell.items_completed += item_count;
  if (std::find(job_.worker_kinds.begin(), job_.worker_kinds.end(), result.kind()) ==
      job_.worker_kinds.end()) {
    job_.worker_kinds.push_back(result.kind());
  }
  if (job_.pinned_kind.empty() && !plan_->spec.mixed_workers()) {
    HOPSCOPE_RETURN_IF_ERROR(PinKind(worker_kind));
  }

  ObserveAttemptEnd(attempt, "completed");
  effects_.Observe([task = plan_->spec.tasks(cell.task).task(), hops = cell.hops,
                    added_tokens = cell.added_tokens, items = result.items(),
                    correct = result.correct()](JobObserver& o) {
    o.OnUnitEnded("completed");
    o.OnItemsScored(task, hops, added_tokens, items, correct);
  });
  TellProgress(cell);

  const absl::Status merged = MergeResult(cell, unit.key.unit, result);
  if (common::ErrorReason(merged) == kInternal) {
    return FailCell(std::move(cell), MakeFailure(kInternal, merged.message()));
  }
  HOPSCOPE_RETURN_IF_ERROR(merged);
  if (cell.units_completed == cell.units()) return FinishCell(std::move(cell));
  return transaction_.UpdateCell(cell);
}

absl::Status JobEdit::MergeResult(store::CellRow& cell, int64_t unit,
                                  const v1::UnitResult& result) {
  v1::UnitResult own = result;
  own.clear_kind();
  if (unit != cell.merged_units) {
    return transaction_.PutUnmergedResult({.job = cell.job, .cell = cell.index, .unit = unit}, own);
  }
  HOPSCOPE_ASSIGN_OR_RETURN(v1::UnitResult merge, transaction_.GetMerge(cell.job, cell.index));
  HOPSCOPE_RETURN_IF_ERROR(MergeUnit(own, merge));
  ++cell.merged_units;
  bool waiting = false;  // results that were kept until now
  for (bool more = cell.units_completed > cell.merged_units; more;) {
    HOPSCOPE_ASSIGN_OR_RETURN(
        const auto results,
        transaction_.UnmergedResults(cell.job, cell.index, cell.merged_units, kMergeBatch));
    more = results.size() == kMergeBatch;
    for (const auto& next : results) {
      if (next.unit != cell.merged_units) {
        more = false;
        break;
      }
      HOPSCOPE_RETURN_IF_ERROR(MergeUnit(next.result, merge));
      ++cell.merged_units;
      waiting = true;
    }
  }
  if (waiting) {
    HOPSCOPE_RETURN_IF_ERROR(
        transaction_.DeleteUnmergedResults(cell.job, cell.index, cell.merged_units));
  }
  cell.scored_items = merge.items();
  cell.failed_items = merge.items_failed();
  cell.correct_items = merge.correct();
  cell.unlabelled_items = merge.items_unlabelled();
  return transaction_.PutMerge(cell.job, cell.index, merge);
}

absl::Status JobEdit::PinKind(absl::string_view worker_kind) {
  job_.pinned_kind = std::string(worker_kind);
  HOPSCOPE_ASSIGN_OR_RETURN(std::vector<store::AttemptRow> leases,
                            transaction_.LeasesOfJob(job_.key, std::nullopt));
  for (store::AttemptRow& lease : leases) {
    HOPSCOPE_ASSIGN_OR_RETURN(const std::optional<store::WorkerRow> worker,
                              transaction_.GetWorker(lease.worker));
    if (worker.has_value() && worker->description.kind() == worker_kind) continue;
    HOPSCOPE_RETURN_IF_ERROR(CancelAttempt(
        std::move(lease),
        absl::StrCat("the job's first result came from a worker of kind ", worker_kind),
        /*requeue=*/true));
  }
  return absl::OkStatus();
}

absl::Status JobEdit::CancelAttempt(store::AttemptRow attempt, absl::string_view why,
                                    bool requeue) {
  effects_.WorkerHasNews(attempt.worker);
  attempt.state = store::AttemptState::kCancelled;
  attempt.end_time = now_;
  attempt.lease_expiry.reset();
  attempt.failure = MakeFailure(kPreempted, why);
  HOPSCOPE_RETURN_IF_ERROR(transaction_.UpdateAttempt(attempt));
  HOPSCOPE_RETURN_IF_ERROR(transaction_.DeleteReportParts(attempt.unit, std::nullopt));
  ObserveAttemptEnd(attempt, "cancelled");
  HOPSCOPE_ASSIGN_OR_RETURN(store::UnitRow unit,
                            Required(transaction_.GetUnit(attempt.unit), "unit"));
  --job_.leased_units;
  if (requeue) {
    ++job_.queued_units;
    unit.queued_time = now_;
    effects_.WorkAppeared();
    effects_.Observe([](JobObserver& o) { o.OnRetry(kPreempted); });
  } else {
    effects_.Observe([](JobObserver& o) { o.OnUnitEnded("cancelled"); });
  }
  unit.state = requeue ? v1::Unit::STATE_QUEUED : v1::Unit::STATE_CANCELLED;
  return transaction_.UpdateUnit(unit);
}

absl::Status JobEdit::FinishCell(store::CellRow cell) {
  if (cell.scored_items == 0) {
    HOPSCOPE_ASSIGN_OR_RETURN(const v1::UnitResult merge,
                              transaction_.GetMerge(cell.job, cell.index));
    std::string message = absl::StrCat("none of ", cell.items, " items gave a result");
    if (merge.item_failures_size() > 0) {
      absl::StrAppend(&message, "; item ", merge.item_failures(0).item(), ": ",
                      merge.item_failures(0).failure().message());
    }
    return FailCell(std::move(cell), MakeFailure(kNumeric, message));
  }
  cell.state = v1::CellResult::STATE_COMPLETED;
  job_.totals.set_cells_completed(job_.totals.cells_completed() + 1);
  HOPSCOPE_RETURN_IF_ERROR(transaction_.UpdateCell(cell));
  HOPSCOPE_RETURN_IF_ERROR(AppendCellEvent(cell));
  return FinishIfDone({});
}

absl::Status JobEdit::FailCell(store::CellRow cell, const v1::Failure& failure) {
  // What is left of it: units that were never leased, that wait again, and that are leased.
  job_.queued_units -= cell.units() - cell.next_unit;
  cell.next_unit = cell.units();
  HOPSCOPE_ASSIGN_OR_RETURN(const int64_t cancelled,
                            transaction_.CancelQueuedUnits(job_.key, cell.index));
  job_.queued_units -= cancelled;
  HOPSCOPE_ASSIGN_OR_RETURN(std::vector<store::AttemptRow> leases,
                            transaction_.LeasesOfJob(job_.key, cell.index));
  for (store::AttemptRow& lease : leases) {
    HOPSCOPE_RETURN_IF_ERROR(CancelAttempt(std::move(lease), "another unit of its cell failed",
                                           /*requeue=*/false));
  }
  cell.state = v1::CellResult::STATE_FAILED;
  cell.failure = failure;
  job_.totals.set_cells_failed(job_.totals.cells_failed() + 1);
  HOPSCOPE_RETURN_IF_ERROR(transaction_.UpdateCell(cell));
  HOPSCOPE_RETURN_IF_ERROR(AppendCellEvent(cell));
  if (plan_->spec.fail_fast()) {
    return Finish(v1::EvalJob::STATE_FAILED,
                  MakeFailure(failure.reason(),
                              absl::StrCat("cell ", cell.index, " failed: ", failure.message())));
  }
  return FinishIfDone(failure);
}

absl::Status JobEdit::AppendCellEvent(const store::CellRow& cell) {
  v1::EvalEvent event;
  *event.mutable_cell_completed()->mutable_result() = MakeCellResult(*plan_, cell);
  return AppendEvent(std::move(event));
}

absl::Status JobEdit::FinishIfDone(const v1::Failure& last_failure) {
  const v1::JobTotals& totals = job_.totals;
  if (totals.cells_completed() + totals.cells_failed() < totals.cells()) return absl::OkStatus();
  if (totals.cells_failed() == 0) return Finish(v1::EvalJob::STATE_SUCCEEDED);
  if (totals.cells_completed() > 0) return Finish(v1::EvalJob::STATE_PARTIALLY_SUCCEEDED);
  return Finish(v1::EvalJob::STATE_FAILED,
                MakeFailure(last_failure.reason(),
                            absl::StrCat("every cell failed; the last: ", last_failure.message())));
}

absl::Status JobEdit::Finish(v1::EvalJob::State state, const v1::Failure& failure) {
  HOPSCOPE_RETURN_IF_ERROR(transaction_.CancelQueuedUnits(job_.key, std::nullopt).status());
  HOPSCOPE_ASSIGN_OR_RETURN(std::vector<store::AttemptRow> leases,
                            transaction_.LeasesOfJob(job_.key, std::nullopt));
  for (store::AttemptRow& lease : leases) {
    HOPSCOPE_RETURN_IF_ERROR(CancelAttempt(
        std::move(lease),
        state == v1::EvalJob::STATE_CANCELLED ? "the job was cancelled" : "the job ended",
        /*requeue=*/false));
  }
  job_.queued_units = 0;
  job_.end_time = now_;
  job_.failure = failure;
  HOPSCOPE_RETURN_IF_ERROR(SetState(state));
  v1::EvalEvent event;
  event.mutable_job_finished()->set_state(state);
  *event.mutable_job_finished()->mutable_totals() = job_.totals;
  if (!failure.reason().empty()) *event.mutable_job_finished()->mutable_failure() = failure;
  effects_.JobEnded(name_);
  return AppendEvent(std::move(event));
}

absl::Status JobEdit::Save() { return transaction_.UpdateJob(job_); }

void JobEdit::TellProgress(const store::CellRow& cell) {
  if (!effects_.IsWatched(name_)) return;
  v1::EvalEvent event;
  event.set_job(name_);
  *event.mutable_time() = ToTimestamp(now_);
  v1::CellProgress* progress = event.mutable_cell_progress();
  *progress->mutable_cell() = DescribeCell(*plan_, cell);
  progress->set_items_done(cell.items_completed);
  progress->set_items_total(cell.items);
  progress->set_job_items_done(job_.totals.items_completed());
  progress->set_job_items_total(job_.totals.items());
  effects_.Progress(std::move(event), job_.start_time.value_or(now_), now_);
}

void JobEdit::ObserveAttemptEnd(const store::AttemptRow& attempt, absl::string_view outcome) {
  effects_.Observe([outcome, duration = now_ - attempt.start_time](JobObserver& o) {
    o.OnAttemptEnded(outcome, duration);
  });
}

}  // namespace hopscope::jobs

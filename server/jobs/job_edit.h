// One job, opened for change within a transaction. Keeps its counts, its units and cells, its state
// and its events in step: whatever happens to a unit goes through here.
//
// Life of a unit: QUEUED -> LEASED -> COMPLETED, FAILED (and its cell with it), CANCELLED, or back
// to QUEUED. A job ends when all its cells have; or with its first failed cell (fail_fast), its
// deadline, or a cancellation, which cancel what is left.
//
// Methods that take rows write them. Save() writes the job itself, once, as the last step. Errors
// are the store's.
#ifndef HOPSCOPE_SERVER_JOBS_JOB_EDIT_H_
#define HOPSCOPE_SERVER_JOBS_JOB_EDIT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/jobs/effects.h"
#include "server/store/store.h"

namespace hopscope::jobs {

// True in the states that a job does not leave by itself.
bool HasEnded(v1::EvalJob::State state);

class JobEdit {
 public:
  // `transaction` and `effects` must outlive the edit. `now` has microseconds.
  JobEdit(store::Transaction& transaction, Effects& effects, store::JobRow job,
          std::shared_ptr<const store::JobPlanRow> plan, absl::Time now);

  const store::JobRow& job() const { return job_; }
  const store::JobPlanRow& plan() const { return *plan_; }
  absl::Time now() const { return now_; }
  bool ended() const { return HasEnded(job_.state); }
  // "jobs/{id}".
  const std::string& name() const { return name_; }

  // Appends a durable event; sequence, job and time are filled in.
  absl::Status AppendEvent(v1::EvalEvent event);
  // Moves the job to a state, with its event. Ends it only through Finish.
  absl::Status SetState(v1::EvalJob::State state);

  // Leases a queued unit to a worker: writes the unit (whose row may be new) and an attempt. The
  // job starts with its first. Of `unit`, only key, attempts, failed_attempts and queued_time need
  // to be set.
  absl::StatusOr<store::AttemptRow> Lease(store::UnitRow unit, bool is_new,
                                          const store::WorkerRow& worker,
                                          absl::Duration lease_duration);

  // Ends an attempt that holds its unit's lease without a result. The unit goes back into the
  // queue, or fails for good where this was the last of max_attempts that count; `counts` says
  // whether this one does. A failure that has a reason makes an event.
  absl::Status EndAttempt(store::AttemptRow attempt, store::UnitRow unit,
                          store::AttemptState end_state, const v1::Failure& failure, bool counts,
                          int max_attempts);

  // Takes a unit's result, of an attempt that holds the lease, or lost it while the unit waits.
  // `worker_kind` is the WorkerDescription.kind of its worker; `item_count` the unit's.
  absl::Status Complete(store::AttemptRow attempt, store::UnitRow unit, store::CellRow cell,
                        const v1::UnitResult& result, absl::string_view worker_kind,
                        int64_t item_count);

  // Ends the job: cancels what is left of it. FAILED takes a failure.
  absl::Status Finish(v1::EvalJob::State state, const v1::Failure& failure = {});

  // Writes the job.
  absl::Status Save();

 private:
  // Stops an attempt that holds a lease, and cancels or requeues its unit.
  absl::Status CancelAttempt(store::AttemptRow attempt, absl::string_view why, bool requeue);
  // Restricts the job to one kind of worker; leases of others end.
  absl::Status PinKind(absl::string_view worker_kind);
  // Merges what is complete from the front of the cell on; `result` is the unit's own.
  absl::Status MergeResult(store::CellRow& cell, int64_t unit, const v1::UnitResult& result);
  absl::Status FinishCell(store::CellRow cell);
  absl::Status FailCell(store::CellRow cell, const v1::Failure& failure);
  absl::Status AppendCellEvent(const store::CellRow& cell);
  // Ends the job where its last cell has ended.
  absl::Status FinishIfDone(const v1::Failure& last_failure);
  void TellProgress(const store::CellRow& cell);
  void ObserveAttemptEnd(const store::AttemptRow& attempt, absl::string_view outcome);

  store::Transaction& transaction_;
  Effects& effects_;
  store::JobRow job_;
  const std::shared_ptr<const store::JobPlanRow> plan_;
  const absl::Time now_;
  const std::string name_;
};

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_JOB_EDIT_H_

#include "server/jobs/job_offer.h"

#include <algorithm>
#include <utility>

#include "common/spec/scorer_lengths.h"
#include "common/status.h"
#include "server/jobs/capability.h"
#include "server/jobs/names.h"
#include "server/jobs/required.h"
#include "server/jobs/unit_range.h"

namespace hopscope::jobs {
namespace {

// Waiting units, and cells, that are looked at together.
constexpr int kRetryBatch = 64;
constexpr int kCellBatch = 16;

// Everything that a worker needs to compute a unit.
v1::WorkUnit DescribeUnit(const std::string& job, const store::JobPlanRow& plan,
                          const store::CellRow& cell, int64_t unit) {
  const v1::TaskSpec& task = plan.spec.tasks(cell.task);
  v1::WorkUnit work;
  work.set_job(job);
  work.mutable_ref()->set_cell_index(cell.index);
  work.mutable_ref()->set_unit_index(unit);
  const ItemRange range = RangeOf(plan, cell, unit);
  work.set_first_item(range.first);
  work.set_item_count(range.count);
  v1::SequenceSpec* sequences = work.mutable_sequences();
  sequences->set_task(task.task());
  sequences->set_hops(cell.hops);
  sequences->set_added_tokens(cell.added_tokens);
  if (task.has_window()) *sequences->mutable_window() = task.window();
  sequences->set_padding(task.padding());
  sequences->set_seed(cell.seed);
  sequences->set_split(v1::SPLIT_EVALUATION);
  sequences->set_tokens_digest(task.tokens_digest());
  *work.mutable_checkpoint() = plan.checkpoints[cell.checkpoint].ref;
  *work.mutable_scorers() = spec::TaskAtLength(task, cell.added_tokens).scorers();
  work.set_dtype(plan.spec.dtype());
  work.set_flops(cell.flops_per_item * static_cast<double>(work.item_count()));
  work.set_traceparent(plan.traceparent);
  return work;
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobOffer>> JobOffer::Make(const OfferContext& context,
                                                         store::JobRow job) {
  HOPSCOPE_ASSIGN_OR_RETURN(std::shared_ptr<const store::JobPlanRow> plan,
                            context.plans.Get(context.transaction, job));
  return std::unique_ptr<JobOffer>(new JobOffer(context, std::move(job), std::move(plan)));
}

JobOffer::JobOffer(const OfferContext& context, store::JobRow job,
                   std::shared_ptr<const store::JobPlanRow> plan)
    : context_(context),
      plan_(plan),
      edit_(context.transaction, context.effects, std::move(job), plan, context.now) {
  const v1::WorkerDescription& worker = context_.worker.description;
  if (!WhyJobDoesNotFit(worker, edit_.job(), plan_->spec).empty()) {
    stage_ = Stage::kDone;
    return;
  }
  for (const v1::TaskSpec& task : plan_->spec.tasks()) {
    task_fits_.push_back(WhyTaskDoesNotFit(worker, task).empty());
  }
  for (const store::CheckpointRow& checkpoint : plan_->checkpoints) {
    checkpoint_fits_.push_back(WhyCheckpointDoesNotFit(worker, checkpoint).empty());
  }
  const auto none = [](const std::vector<bool>& fits) {
    return std::find(fits.begin(), fits.end(), true) == fits.end();
  };
  if (none(task_fits_) || none(checkpoint_fits_)) {
    stage_ = Stage::kDone;
    return;
  }
  if (context_.loaded_digests.empty()) return;
  std::vector<std::pair<int, int32_t>> loaded;  // rank, checkpoint
  for (size_t i = 0; i < plan_->checkpoints.size(); ++i) {
    const auto found = context_.loaded_digests.find(plan_->checkpoints[i].ref.digest());
    if (found != context_.loaded_digests.end() && checkpoint_fits_[i]) {
      loaded.emplace_back(found->second, static_cast<int32_t>(i));
    }
  }
  std::sort(loaded.begin(), loaded.end());
  for (const auto& [rank, checkpoint] : loaded) loaded_checkpoints_.push_back(checkpoint);
}

absl::StatusOr<bool> JobOffer::LeaseNext(v1::LeaseUnitsResponse& response) {
  for (;;) {
    bool leased = false;
    switch (stage_) {
      case Stage::kRetries: {
        HOPSCOPE_ASSIGN_OR_RETURN(leased, LeaseRetry(response));
        if (!leased) stage_ = Stage::kLoaded;
        break;
      }
      case Stage::kLoaded: {
        HOPSCOPE_ASSIGN_OR_RETURN(leased, LeaseLoaded(response));
        if (!leased) stage_ = Stage::kPlanned;
        break;
      }
      case Stage::kPlanned: {
        HOPSCOPE_ASSIGN_OR_RETURN(leased, LeasePlanned(std::nullopt, response));
        if (!leased) stage_ = Stage::kOwnRetries;
        break;
      }
      case Stage::kOwnRetries: {
        HOPSCOPE_ASSIGN_OR_RETURN(leased, LeaseOwnRetry(response));
        if (!leased) stage_ = Stage::kDone;
        break;
      }
      case Stage::kDone:
        return false;
    }
    if (leased) return true;
  }
}

absl::StatusOr<bool> JobOffer::LeaseRetry(v1::LeaseUnitsResponse& response) {
  for (;;) {
    if (retries_.empty() && !retries_exhausted_) {
      HOPSCOPE_ASSIGN_OR_RETURN(
          std::vector<store::UnitRow> units,
          context_.transaction.QueuedUnits(edit_.job().key, last_retry_, kRetryBatch));
      retries_exhausted_ = units.size() < kRetryBatch;
      retries_.assign(units.begin(), units.end());
      if (!units.empty()) last_retry_ = units.back().key;
    }
    if (retries_.empty()) return false;
    store::UnitRow unit = retries_.front();
    retries_.pop_front();
    HOPSCOPE_ASSIGN_OR_RETURN(
        const store::CellRow cell,
        Required(context_.transaction.GetCell(unit.key.job, unit.key.cell), "cell"));
    if (!Fits(cell)) continue;
    HOPSCOPE_ASSIGN_OR_RETURN(const std::vector<store::AttemptRow> attempts,
                              unit.failed_attempts == 0
                                  ? std::vector<store::AttemptRow>()
                                  : context_.transaction.ListAttempts(unit.key));
    const bool failed_here =
        std::any_of(attempts.begin(), attempts.end(), [this](const store::AttemptRow& attempt) {
          return attempt.state == store::AttemptState::kFailed &&
                 attempt.worker == context_.worker.id;
        });
    if (failed_here) {
      own_retries_.push_back(std::move(unit));
      continue;
    }
    HOPSCOPE_RETURN_IF_ERROR(Lease(std::move(unit), /*is_new=*/false, cell, response));
    return true;
  }
}

absl::StatusOr<bool> JobOffer::LeaseLoaded(v1::LeaseUnitsResponse& response) {
  while (!loaded_checkpoints_.empty()) {
    HOPSCOPE_ASSIGN_OR_RETURN(const bool leased,
                              LeasePlanned(loaded_checkpoints_.front(), response));
    if (leased) return true;
    loaded_checkpoints_.pop_front();
  }
  return false;
}

absl::StatusOr<bool> JobOffer::LeasePlanned(std::optional<int32_t> checkpoint,
                                            v1::LeaseUnitsResponse& response) {
  while (!cell_.has_value() || !cell_->leasable()) {
    HOPSCOPE_RETURN_IF_ERROR(CloseCell());
    HOPSCOPE_ASSIGN_OR_RETURN(
        std::vector<store::CellRow> cells,
        context_.transaction.LeasableCells(edit_.job().key, checkpoint, next_cell_, kCellBatch));
    const auto fits = std::find_if(cells.begin(), cells.end(),
                                   [this](const store::CellRow& cell) { return Fits(cell); });
    if (fits != cells.end()) {
      cell_ = *std::move(fits);
      next_cell_ = cell_->index + 1;
    } else if (cells.size() < kCellBatch) {
      next_cell_ = 0;  // for the next checkpoint or stage
      return false;
    } else {
      next_cell_ = cells.back().index + 1;
    }
  }
  store::UnitRow unit;
  unit.key = {.job = edit_.job().key, .cell = cell_->index, .unit = cell_->next_unit};
  unit.queued_time = edit_.job().create_time;
  ++cell_->next_unit;
  HOPSCOPE_RETURN_IF_ERROR(Lease(std::move(unit), /*is_new=*/true, *cell_, response));
  return true;
}

absl::StatusOr<bool> JobOffer::LeaseOwnRetry(v1::LeaseUnitsResponse& response) {
  while (!own_retries_.empty()) {
    store::UnitRow unit = std::move(own_retries_.front());
    own_retries_.pop_front();
    HOPSCOPE_ASSIGN_OR_RETURN(
        const store::CellRow cell,
        Required(context_.transaction.GetCell(unit.key.job, unit.key.cell), "cell"));
    HOPSCOPE_ASSIGN_OR_RETURN(const bool others, BelongsToOthers(unit, cell));
    if (others) continue;
    HOPSCOPE_RETURN_IF_ERROR(Lease(std::move(unit), /*is_new=*/false, cell, response));
    return true;
  }
  return false;
}

absl::StatusOr<bool> JobOffer::BelongsToOthers(const store::UnitRow& unit,
                                               const store::CellRow& cell) {
  if (!workers_.has_value()) {
    HOPSCOPE_ASSIGN_OR_RETURN(workers_, context_.transaction.ListWorkers());
  }
  HOPSCOPE_ASSIGN_OR_RETURN(const std::vector<store::AttemptRow> attempts,
                            context_.transaction.ListAttempts(unit.key));
  return std::any_of(workers_->begin(), workers_->end(), [&](const store::WorkerRow& worker) {
    return worker.state == v1::Worker::STATE_ACTIVE &&
           WhyCellDoesNotFit(worker.description, edit_.job(), *plan_, cell).empty() &&
           std::none_of(attempts.begin(), attempts.end(), [&](const store::AttemptRow& attempt) {
             return attempt.state == store::AttemptState::kFailed && attempt.worker == worker.id;
           });
  });
}

absl::Status JobOffer::Lease(store::UnitRow unit, bool is_new, const store::CellRow& cell,
                             v1::LeaseUnitsResponse& response) {
  const int64_t index = unit.key.unit;
  HOPSCOPE_ASSIGN_OR_RETURN(
      const store::AttemptRow attempt,
      edit_.Lease(std::move(unit), is_new, context_.worker, context_.lease_duration));
  leased_any_ = true;
  v1::UnitLease* lease = response.add_leases();
  lease->set_attempt_id(FormatAttemptId({.job_id = edit_.job().id,
                                         .cell = cell.index,
                                         .unit = index,
                                         .number = attempt.number,
                                         .nonce = attempt.nonce}));
  lease->set_attempt(attempt.number);
  *lease->mutable_unit() = DescribeUnit(edit_.name(), *plan_, cell, index);
  return absl::OkStatus();
}

absl::Status JobOffer::CloseCell() {
  if (!cell_.has_value()) return absl::OkStatus();
  const store::CellRow cell = *std::exchange(cell_, std::nullopt);
  return context_.transaction.UpdateCell(cell);
}

absl::Status JobOffer::Close() {
  HOPSCOPE_RETURN_IF_ERROR(CloseCell());
  return leased_any_ ? edit_.Save() : absl::OkStatus();
}

}  // namespace hopscope::jobs

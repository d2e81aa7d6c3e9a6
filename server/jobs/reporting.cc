#include "server/jobs/reporting.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/spec/scorer_lengths.h"
#include "common/status.h"
#include "server/jobs/failures.h"
#include "server/jobs/job_edit.h"
#include "server/jobs/plausibility.h"
#include "server/jobs/required.h"
#include "server/jobs/unit_range.h"

namespace hopscope::jobs {
namespace {

using Disposition = v1::ReportUnitResponse::Disposition;

// At 1 MiB a part, far above the results of the largest models.
constexpr int32_t kMaxParts = 256;
constexpr size_t kMaxPartBytes = 1 << 20;

// A report with the rows that it is about.
class Report {
 public:
  Report(store::Transaction& transaction, const v1::ReportUnitRequest& request, JobEdit& edit,
         store::AttemptRow attempt, store::UnitRow unit, int max_attempts)
      : transaction_(transaction),
        request_(request),
        edit_(edit),
        attempt_(std::move(attempt)),
        unit_(std::move(unit)),
        max_attempts_(max_attempts) {}

  absl::StatusOr<Disposition> Apply() {
    switch (attempt_.state) {
      case store::AttemptState::kCompleted:
      case store::AttemptState::kFailed:
      case store::AttemptState::kHandedBack:
        return v1::ReportUnitResponse::DISPOSITION_DUPLICATE;
      case store::AttemptState::kCancelled:
        return v1::ReportUnitResponse::DISPOSITION_SUPERSEDED;
      case store::AttemptState::kLost:
        // Only a result, and only as long as nobody else has the unit or a result of it.
        if (unit_.state != v1::Unit::STATE_QUEUED || edit_.ended() ||
            request_.outcome_case() != v1::ReportUnitRequest::kResultPart) {
          return v1::ReportUnitResponse::DISPOSITION_SUPERSEDED;
        }
        break;
      case store::AttemptState::kLeased:
        break;
    }
    switch (request_.outcome_case()) {
      case v1::ReportUnitRequest::kResultPart:
        return TakePart();
      case v1::ReportUnitRequest::kFailure: {
        const v1::Failure failure = BoundAttemptFailure(request_.failure());
        return Fail(failure, /*counts=*/failure.reason() != kPreempted);
      }
      default:
        HOPSCOPE_RETURN_IF_ERROR(edit_.EndAttempt(std::move(attempt_), std::move(unit_),
                                                  store::AttemptState::kHandedBack, {},
                                                  /*counts=*/false, max_attempts_));
        return v1::ReportUnitResponse::DISPOSITION_APPLIED;
    }
  }

 private:
  absl::StatusOr<Disposition> Fail(const v1::Failure& failure, bool counts) {
    HOPSCOPE_RETURN_IF_ERROR(edit_.EndAttempt(std::move(attempt_), std::move(unit_),
                                              store::AttemptState::kFailed, failure, counts,
                                              max_attempts_));
    return v1::ReportUnitResponse::DISPOSITION_APPLIED;
  }

  // A result that cannot be used. Without a lease there is nothing to fail any more.
  absl::StatusOr<Disposition> Refuse(absl::string_view why) {
    if (attempt_.state == store::AttemptState::kLost) {
      return v1::ReportUnitResponse::DISPOSITION_SUPERSEDED;
    }
    return Fail(MakeFailure(kInternal, why), /*counts=*/true);
  }

  // Keeps a part, or applies the result where this was the last one that was missing.
  absl::StatusOr<Disposition> TakePart() {
    if (request_.part_count() == 1) return TakeResult(request_.result_part());
    HOPSCOPE_RETURN_IF_ERROR(transaction_.PutReportPart(unit_.key, attempt_.number,
                                                        {.part = request_.part(),
                                                         .part_count = request_.part_count(),
                                                         .bytes = request_.result_part()}));
    HOPSCOPE_ASSIGN_OR_RETURN(const std::vector<store::ReadTransaction::ReportPart> parts,
                              transaction_.ReportParts(unit_.key, attempt_.number));
    std::string bytes;
    for (const auto& part : parts) {
      if (part.part_count != request_.part_count()) {
        return common::InvalidField(
            "PART_COUNT_CHANGED", "part_count", absl::StrCat(request_.part_count()),
            absl::StrCat("this attempt's report began with ", part.part_count, " parts"));
      }
      absl::StrAppend(&bytes, part.bytes);
    }
    if (static_cast<int32_t>(parts.size()) < request_.part_count()) {
      return v1::ReportUnitResponse::DISPOSITION_PARTIAL;
    }
    return TakeResult(bytes);
  }

  absl::StatusOr<Disposition> TakeResult(const std::string& bytes) {
    v1::UnitResult result;
    if (!result.ParseFromString(bytes)) {
      return Refuse("the worker's result is no UnitResult");
    }
    HOPSCOPE_ASSIGN_OR_RETURN(
        store::CellRow cell, Required(transaction_.GetCell(unit_.key.job, unit_.key.cell), "cell"));
    HOPSCOPE_ASSIGN_OR_RETURN(const std::optional<store::WorkerRow> worker,
                              transaction_.GetWorker(attempt_.worker));
    // A worker is forgotten long after it lost its leases.
    if (!worker.has_value()) return v1::ReportUnitResponse::DISPOSITION_SUPERSEDED;
    const store::JobPlanRow& plan = edit_.plan();
    const int64_t item_count = RangeOf(plan, cell, unit_.key.unit).count;
    const absl::Status plausible = CheckUnitResult(
        result, item_count, spec::TaskAtLength(plan.spec.tasks(cell.task), cell.added_tokens),
        plan.checkpoints[cell.checkpoint]);
    if (!plausible.ok()) return Refuse(plausible.message());

    const store::JobRow& job = edit_.job();
    const std::string& worker_kind = worker->description.kind();
    if (!plan.spec.mixed_workers() && !job.pinned_kind.empty()) {
      // Leases of other kinds ended when the job was pinned; this one was lost before that.
      if (worker_kind != job.pinned_kind) return v1::ReportUnitResponse::DISPOSITION_SUPERSEDED;
      if (result.kind() != job.worker_kinds.front()) {
        return Refuse(absl::StrCat("the result is of kind ", result.kind(),
                                   ", the job's first one is of kind ", job.worker_kinds.front(),
                                   ", though both came from workers of kind ", worker_kind));
      }
    }
    HOPSCOPE_RETURN_IF_ERROR(edit_.Complete(std::move(attempt_), std::move(unit_), std::move(cell),
                                            result, worker_kind, item_count));
    return v1::ReportUnitResponse::DISPOSITION_APPLIED;
  }

  store::Transaction& transaction_;
  const v1::ReportUnitRequest& request_;
  JobEdit& edit_;
  store::AttemptRow attempt_;
  store::UnitRow unit_;
  const int max_attempts_;
};

}  // namespace

absl::StatusOr<AttemptName> CheckReport(const v1::ReportUnitRequest& request) {
  HOPSCOPE_RETURN_IF_ERROR(CheckWorkerId(request.worker_id()));
  HOPSCOPE_ASSIGN_OR_RETURN(AttemptName name, ParseAttemptId(request.attempt_id()));
  if (request.part_count() < 1 || request.part_count() > kMaxParts) {
    return common::InvalidField("VALUE_OUT_OF_RANGE", "part_count",
                                absl::StrCat(request.part_count()),
                                absl::StrCat("1 to ", kMaxParts));
  }
  if (request.part() < 0 || request.part() >= request.part_count()) {
    return common::InvalidField("VALUE_OUT_OF_RANGE", "part", absl::StrCat(request.part()),
                                absl::StrCat("0 to ", request.part_count() - 1));
  }
  if (request.outcome_case() == v1::ReportUnitRequest::OUTCOME_NOT_SET) {
    return common::InvalidField("FIELD_MISSING", "outcome", "nothing",
                                "one of result_part, failure and hand_back is needed");
  }
  if (request.result_part().size() > kMaxPartBytes) {
    return common::InvalidField("LIMIT_EXCEEDED", "result_part",
                                absl::StrCat(request.result_part().size(), " bytes"),
                                absl::StrCat("at most ", kMaxPartBytes, " bytes a part"));
  }
  return name;
}

absl::StatusOr<Disposition> ApplyReport(store::Transaction& transaction, PlanCache& plans,
                                        Effects& effects, const v1::ReportUnitRequest& request,
                                        const AttemptName& name, int max_attempts, absl::Time now) {
  HOPSCOPE_ASSIGN_OR_RETURN(std::optional<store::JobRow> job, transaction.FindJob(name.job_id));
  // Deleted: there is nothing left that the report could change.
  if (!job.has_value()) return v1::ReportUnitResponse::DISPOSITION_SUPERSEDED;
  const store::UnitKey key = {.job = job->key, .cell = name.cell, .unit = name.unit};
  HOPSCOPE_ASSIGN_OR_RETURN(std::optional<store::AttemptRow> attempt,
                            transaction.GetAttempt(key, name.number));
  if (!attempt.has_value() || attempt->nonce != name.nonce) {
    return common::MakeError(
        absl::StatusCode::kNotFound, "ATTEMPT_NOT_FOUND",
        absl::StrCat("attempt ", request.attempt_id(), " was never given to a worker"));
  }
  if (attempt->worker != request.worker_id()) {
    return common::MakeError(absl::StatusCode::kFailedPrecondition, "ATTEMPT_OF_ANOTHER_WORKER",
                             absl::StrCat("attempt ", request.attempt_id(), " was given to ",
                                          attempt->worker, ", not to ", request.worker_id()));
  }
  HOPSCOPE_ASSIGN_OR_RETURN(store::UnitRow unit, Required(transaction.GetUnit(key), "unit"));
  HOPSCOPE_ASSIGN_OR_RETURN(std::shared_ptr<const store::JobPlanRow> plan,
                            plans.Get(transaction, *job));
  JobEdit edit(transaction, effects, *std::move(job), std::move(plan), now);
  HOPSCOPE_ASSIGN_OR_RETURN(
      const Disposition disposition,
      Report(transaction, request, edit, *std::move(attempt), std::move(unit), max_attempts)
          .Apply());
  if (disposition == v1::ReportUnitResponse::DISPOSITION_APPLIED) {
    HOPSCOPE_RETURN_IF_ERROR(edit.Save());
  }
  return disposition;
}

}  // namespace hopscope::jobs

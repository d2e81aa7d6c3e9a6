// Cells, units, attempts, their results and the parts of their reports.
#include <limits>
#include <utility>

#include "server/store/sqlite_proto.h"
#include "server/store/sqlite_transaction.h"

namespace hopscope::store {
namespace {

#define HOPSCOPE_SELECT_CELLS                                                               \
  "SELECT job, cell, checkpoint, task, hops, added_tokens, seed, items, items_per_unit, "   \
  "flops_per_item, state, next_unit, units_completed, items_completed, merged_units, "      \
  "scored_items, failed_items, correct_items, failure_reason, failure_message, cut_units, " \
  "unlabelled_items FROM cells"

CellRow ReadCell(const SqliteStatement& row) {
  CellRow cell;
  cell.job = row.Int(0);
  cell.index = static_cast<int32_t>(row.Int(1));
  cell.checkpoint = static_cast<int32_t>(row.Int(2));
  cell.task = static_cast<int32_t>(row.Int(3));
  cell.hops = static_cast<int32_t>(row.Int(4));
  cell.added_tokens = static_cast<int32_t>(row.Int(5));
  cell.seed = row.Int(6);
  cell.items = row.Int(7);
  cell.items_per_unit = row.Int(8);
  cell.flops_per_item = row.Double(9);
  cell.state = static_cast<v1::CellResult::State>(row.Int(10));
  cell.next_unit = row.Int(11);
  cell.units_completed = row.Int(12);
  cell.items_completed = row.Int(13);
  cell.merged_units = row.Int(14);
  cell.scored_items = row.Int(15);
  cell.failed_items = row.Int(16);
  cell.correct_items = row.Int(17);
  cell.failure.set_reason(row.Text(18));
  cell.failure.set_message(row.Text(19));
  cell.cut_units = row.Int(20);
  cell.unlabelled_items = row.Int(21);
  return cell;
}

#define HOPSCOPE_SELECT_UNITS \
  "SELECT job, cell, unit, state, attempts, failed_attempts, queued_time FROM units"

UnitRow ReadUnit(const SqliteStatement& row) {
  UnitRow unit;
  unit.key = {.job = row.Int(0), .cell = static_cast<int32_t>(row.Int(1)), .unit = row.Int(2)};
  unit.state = static_cast<v1::Unit::State>(row.Int(3));
  unit.attempts = static_cast<int32_t>(row.Int(4));
  unit.failed_attempts = static_cast<int32_t>(row.Int(5));
  unit.queued_time = row.Time(6);
  return unit;
}

#define HOPSCOPE_SELECT_ATTEMPTS                                                 \
  "SELECT job, cell, unit, number, nonce, worker, state, start_time, end_time, " \
  "lease_expiry, failure_reason, failure_message FROM attempts"

AttemptRow ReadAttempt(const SqliteStatement& row) {
  AttemptRow attempt;
  attempt.unit = {.job = row.Int(0), .cell = static_cast<int32_t>(row.Int(1)), .unit = row.Int(2)};
  attempt.number = static_cast<int32_t>(row.Int(3));
  attempt.nonce = row.Int(4);
  attempt.worker = row.Text(5);
  attempt.state = static_cast<AttemptState>(row.Int(6));
  attempt.start_time = row.Time(7);
  attempt.end_time = row.OptionalTime(8);
  attempt.lease_expiry = row.OptionalTime(9);
  attempt.failure.set_reason(row.Text(10));
  attempt.failure.set_message(row.Text(11));
  return attempt;
}

// The range of cells that an optional cell stands for.
int32_t FirstCell(std::optional<int32_t> cell) { return cell.value_or(0); }
int32_t LastCell(std::optional<int32_t> cell) {
  return cell.value_or(std::numeric_limits<int32_t>::max());
}

}  // namespace

absl::StatusOr<std::optional<CellRow>> SqliteTransaction::GetCell(JobKey job, int32_t cell) {
  return connection_.QueryOne(HOPSCOPE_SELECT_CELLS " WHERE job = ?1 AND cell = ?2", ReadCell, job,
                              cell);
}

absl::StatusOr<std::vector<CellRow>> SqliteTransaction::LeasableCells(
    JobKey job, std::optional<int32_t> checkpoint, int32_t from_cell, int limit) {
  if (checkpoint.has_value()) {
    return connection_.QueryAll(
        HOPSCOPE_SELECT_CELLS
        " INDEXED BY cells_leasable_by_checkpoint WHERE is_leasable = 1 AND job = ?1 AND "
        "checkpoint = ?2 AND cell >= ?3 ORDER BY cell LIMIT ?4",
        ReadCell, job, *checkpoint, from_cell, limit);
  }
  return connection_.QueryAll(
      HOPSCOPE_SELECT_CELLS
      " INDEXED BY cells_leasable WHERE is_leasable = 1 AND job = ?1 AND cell >= ?2 "
      "ORDER BY cell LIMIT ?3",
      ReadCell, job, from_cell, limit);
}

absl::StatusOr<std::vector<CellRow>> SqliteTransaction::FinishedCells(JobKey job, int32_t from_cell,
                                                                      int limit) {
  return connection_.QueryAll(HOPSCOPE_SELECT_CELLS
                              " WHERE job = ?1 AND cell >= ?2 AND state <> ?3 "
                              "ORDER BY cell LIMIT ?4",
                              ReadCell, job, from_cell, v1::CellResult::STATE_RUNNING, limit);
}

absl::StatusOr<v1::UnitResult> SqliteTransaction::GetMerge(JobKey job, int32_t cell) {
  bool damaged = false;
  HOPSCOPE_ASSIGN_OR_RETURN(std::optional<v1::UnitResult> merge,
                            connection_.QueryOne(
                                "SELECT merge FROM merges WHERE job = ?1 AND cell = ?2",
                                [&damaged](const SqliteStatement& row) {
                                  v1::UnitResult result;
                                  ParseProto(row.Bytes(0), result, damaged);
                                  return result;
                                },
                                job, cell));
  if (damaged) return DamagedProto("merge");
  return merge.has_value() ? *std::move(merge) : v1::UnitResult();
}

absl::StatusOr<std::optional<UnitRow>> SqliteTransaction::GetUnit(const UnitKey& key) {
  return connection_.QueryOne(HOPSCOPE_SELECT_UNITS " WHERE job = ?1 AND cell = ?2 AND unit = ?3",
                              ReadUnit, key.job, key.cell, key.unit);
}

absl::StatusOr<std::vector<UnitRow>> SqliteTransaction::QueuedUnits(
    JobKey job, const std::optional<UnitKey>& after, int limit) {
  // State 1 is QUEUED: written out, as the partial index has it.
  return connection_.QueryAll(HOPSCOPE_SELECT_UNITS
                              " INDEXED BY units_queued WHERE state = 1 AND job = ?1 AND "
                              "(cell, unit) > (?2, ?3) ORDER BY cell, unit LIMIT ?4",
                              ReadUnit, job, after.has_value() ? after->cell : -1,
                              after.has_value() ? after->unit : -1, limit);
}

absl::StatusOr<std::vector<ReadTransaction::UnmergedResult>> SqliteTransaction::UnmergedResults(
    JobKey job, int32_t cell, int64_t first_unit, int limit) {
  bool damaged = false;
  HOPSCOPE_ASSIGN_OR_RETURN(
      std::vector<UnmergedResult> results,
      connection_.QueryAll(
          "SELECT unit, result FROM unmerged_results "
          "WHERE job = ?1 AND cell = ?2 AND unit >= ?3 ORDER BY unit LIMIT ?4",
          [&damaged](const SqliteStatement& row) {
            UnmergedResult result;
            result.unit = row.Int(0);
            ParseProto(row.Bytes(1), result.result, damaged);
            return result;
          },
          job, cell, first_unit, limit));
  if (damaged) return DamagedProto("result");
  return results;
}

absl::StatusOr<std::optional<AttemptRow>> SqliteTransaction::GetAttempt(const UnitKey& unit,
                                                                        int32_t number) {
  return connection_.QueryOne(HOPSCOPE_SELECT_ATTEMPTS
                              " WHERE job = ?1 AND cell = ?2 AND unit = ?3 AND number = ?4",
                              ReadAttempt, unit.job, unit.cell, unit.unit, number);
}

absl::StatusOr<std::vector<AttemptRow>> SqliteTransaction::ListAttempts(const UnitKey& unit) {
  return connection_.QueryAll(HOPSCOPE_SELECT_ATTEMPTS
                              " WHERE job = ?1 AND cell = ?2 AND unit = ?3 ORDER BY number",
                              ReadAttempt, unit.job, unit.cell, unit.unit);
}

absl::StatusOr<std::vector<AttemptRow>> SqliteTransaction::LeasesOfWorker(
    absl::string_view worker) {
  return connection_.QueryAll(HOPSCOPE_SELECT_ATTEMPTS
                              " INDEXED BY leases_by_worker WHERE lease_expiry IS NOT NULL AND "
                              "worker = ?1 ORDER BY job, cell, unit",
                              ReadAttempt, worker);
}

absl::StatusOr<std::vector<AttemptRow>> SqliteTransaction::LeasesOfJob(
    JobKey job, std::optional<int32_t> cell) {
  return connection_.QueryAll(HOPSCOPE_SELECT_ATTEMPTS
                              " INDEXED BY leases_by_job WHERE lease_expiry IS NOT NULL AND "
                              "job = ?1 AND cell BETWEEN ?2 AND ?3 ORDER BY cell, unit",
                              ReadAttempt, job, FirstCell(cell), LastCell(cell));
}

absl::StatusOr<std::vector<AttemptRow>> SqliteTransaction::ExpiredLeases(absl::Time now,
                                                                         int limit) {
  // Looks at every lease there is: as many as workers hold, not as many as jobs have.
  return connection_.QueryAll(HOPSCOPE_SELECT_ATTEMPTS
                              " INDEXED BY leases_by_worker WHERE lease_expiry IS NOT NULL AND "
                              "lease_expiry <= ?1 ORDER BY worker, job, cell, unit LIMIT ?2",
                              ReadAttempt, now, limit);
}

absl::StatusOr<std::vector<ReadTransaction::ReportPart>> SqliteTransaction::ReportParts(
    const UnitKey& unit, int32_t attempt) {
  return connection_.QueryAll(
      "SELECT part, part_count, bytes FROM report_parts "
      "WHERE job = ?1 AND cell = ?2 AND unit = ?3 AND number = ?4 ORDER BY part",
      [](const SqliteStatement& row) {
        return ReportPart{.part = static_cast<int32_t>(row.Int(0)),
                          .part_count = static_cast<int32_t>(row.Int(1)),
                          .bytes = row.Text(2)};
      },
      unit.job, unit.cell, unit.unit, attempt);
}

absl::Status SqliteTransaction::InsertCells(absl::Span<const CellRow> cells) {
  for (const CellRow& cell : cells) {
    HOPSCOPE_RETURN_IF_ERROR(connection_.Run(
        "INSERT INTO cells (job, cell, checkpoint, task, hops, added_tokens, seed, items, "
        "items_per_unit, flops_per_item, state, is_leasable, next_unit, units_completed, "
        "items_completed, merged_units, scored_items, failed_items, correct_items, failure_reason, "
        "failure_message, cut_units, unlabelled_items) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        cell.job, cell.index, cell.checkpoint, cell.task, cell.hops, cell.added_tokens, cell.seed,
        cell.items, cell.items_per_unit, cell.flops_per_item, cell.state, cell.leasable(),
        cell.next_unit, cell.units_completed, cell.items_completed, cell.merged_units,
        cell.scored_items, cell.failed_items, cell.correct_items, cell.failure.reason(),
        cell.failure.message(), cell.cut_units, cell.unlabelled_items));
  }
  return absl::OkStatus();
}

absl::Status SqliteTransaction::UpdateCell(const CellRow& row) {
  HOPSCOPE_RETURN_IF_ERROR(connection_.RunOnRow(
      "UPDATE cells SET state = ?, next_unit = ?, units_completed = ?, items_completed = ?, "
      "merged_units = ?, scored_items = ?, failed_items = ?, correct_items = ?, "
      "unlabelled_items = ?, failure_reason = ?, failure_message = ? WHERE job = ? AND cell = ?",
      row.state, row.next_unit, row.units_completed, row.items_completed, row.merged_units,
      row.scored_items, row.failed_items, row.correct_items, row.unlabelled_items,
      row.failure.reason(), row.failure.message(), row.job, row.index));
  return connection_.Run(
      "UPDATE cells SET is_leasable = ?1 WHERE job = ?2 AND cell = ?3 AND is_leasable <> ?1",
      row.leasable(), row.job, row.index);
}

absl::Status SqliteTransaction::PutMerge(JobKey job, int32_t cell, const v1::UnitResult& merge) {
  return connection_.Run(
      "INSERT INTO merges (job, cell, merge) VALUES (?1, ?2, ?3) "
      "ON CONFLICT (job, cell) DO UPDATE SET merge = ?3",
      job, cell, Blob{merge.SerializeAsString()});
}

absl::Status SqliteTransaction::InsertUnit(const UnitRow& row) {
  return connection_.Run(
      "INSERT INTO units (job, cell, unit, state, attempts, failed_attempts, queued_time) "
      "VALUES (?, ?, ?, ?, ?, ?, ?)",
      row.key.job, row.key.cell, row.key.unit, row.state, row.attempts, row.failed_attempts,
      row.queued_time);
}

absl::Status SqliteTransaction::UpdateUnit(const UnitRow& row) {
  return connection_.RunOnRow(
      "UPDATE units SET state = ?, attempts = ?, failed_attempts = ?, queued_time = ? "
      "WHERE job = ? AND cell = ? AND unit = ?",
      row.state, row.attempts, row.failed_attempts, row.queued_time, row.key.job, row.key.cell,
      row.key.unit);
}

absl::StatusOr<int64_t> SqliteTransaction::CancelQueuedUnits(JobKey job,
                                                             std::optional<int32_t> cell) {
  // State 1 is QUEUED: written out, as the partial index has it.
  HOPSCOPE_RETURN_IF_ERROR(connection_.Run(
      "UPDATE units SET state = ?1 WHERE state = 1 AND job = ?2 AND cell BETWEEN ?3 AND ?4",
      v1::Unit::STATE_CANCELLED, job, FirstCell(cell), LastCell(cell)));
  return connection_.Changes();
}

absl::Status SqliteTransaction::PutUnmergedResult(const UnitKey& unit,
                                                  const v1::UnitResult& result) {
  return connection_.Run(
      "INSERT INTO unmerged_results (job, cell, unit, result) VALUES (?, ?, ?, ?)", unit.job,
      unit.cell, unit.unit, Blob{result.SerializeAsString()});
}

absl::Status SqliteTransaction::DeleteUnmergedResults(JobKey job, int32_t cell,
                                                      int64_t before_unit) {
  return connection_.Run("DELETE FROM unmerged_results WHERE job = ?1 AND cell = ?2 AND unit < ?3",
                         job, cell, before_unit);
}

absl::Status SqliteTransaction::InsertAttempt(const AttemptRow& row) {
  return connection_.Run(
      "INSERT INTO attempts (job, cell, unit, number, nonce, worker, state, start_time, end_time, "
      "lease_expiry, failure_reason, failure_message) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      row.unit.job, row.unit.cell, row.unit.unit, row.number, row.nonce, row.worker, row.state,
      row.start_time, row.end_time, row.lease_expiry, row.failure.reason(), row.failure.message());
}

absl::Status SqliteTransaction::UpdateAttempt(const AttemptRow& row) {
  return connection_.RunOnRow(
      "UPDATE attempts SET state = ?, end_time = ?, lease_expiry = ?, failure_reason = ?, "
      "failure_message = ? WHERE job = ? AND cell = ? AND unit = ? AND number = ?",
      row.state, row.end_time, row.lease_expiry, row.failure.reason(), row.failure.message(),
      row.unit.job, row.unit.cell, row.unit.unit, row.number);
}

absl::Status SqliteTransaction::PutReportPart(const UnitKey& unit, int32_t attempt,
                                              const ReportPart& part) {
  return connection_.Run(
      "INSERT INTO report_parts (job, cell, unit, number, part, part_count, bytes) "
      "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
      unit.job, unit.cell, unit.unit, attempt, part.part, part.part_count, Blob{part.bytes});
}

absl::Status SqliteTransaction::DeleteReportParts(const UnitKey& unit,
                                                  std::optional<int32_t> attempt) {
  return connection_.Run(
      "DELETE FROM report_parts WHERE job = ?1 AND cell = ?2 AND unit = ?3 AND "
      "number BETWEEN ?4 AND ?5",
      unit.job, unit.cell, unit.unit, attempt.value_or(0),
      attempt.value_or(std::numeric_limits<int32_t>::max()));
}

}  // namespace hopscope::store

// Jobs: their rows, plans, labels and request ids, and the queue that leasing looks at.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "nlohmann/json.hpp"
#include "server/store/sqlite_proto.h"
#include "server/store/sqlite_transaction.h"

namespace hopscope::store {
namespace {

#define HOPSCOPE_SELECT_JOBS                                                                      \
  "SELECT key, id, tenant, state, priority, create_time, start_time, end_time, deadline, cells, " \
  "cells_completed, cells_failed, units, units_completed, units_failed, items, "                  \
  "items_completed, items_failed, queued_units, leased_units, last_sequence, pinned_kind, "       \
  "worker_kinds, failure_reason, failure_message FROM jobs"

std::string ToJson(const std::vector<std::string>& texts) {
  // Invalid UTF-8 is replaced, so that dump() cannot throw.
  return nlohmann::json(texts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<std::string> FromJson(absl::string_view text) {
  std::vector<std::string> texts;
  const nlohmann::json parsed =
      nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  for (const nlohmann::json& element : parsed) {
    if (element.is_string()) texts.push_back(element.get<std::string>());
  }
  return texts;
}

JobRow ReadJob(const SqliteStatement& row) {
  JobRow job;
  job.key = row.Int(0);
  job.id = row.Text(1);
  job.tenant = row.Text(2);
  job.state = static_cast<v1::EvalJob::State>(row.Int(3));
  job.priority = static_cast<int32_t>(row.Int(4));
  job.create_time = row.Time(5);
  job.start_time = row.OptionalTime(6);
  job.end_time = row.OptionalTime(7);
  job.deadline = row.OptionalTime(8);
  job.totals.set_cells(row.Int(9));
  job.totals.set_cells_completed(row.Int(10));
  job.totals.set_cells_failed(row.Int(11));
  job.totals.set_units(row.Int(12));
  job.totals.set_units_completed(row.Int(13));
  job.totals.set_units_failed(row.Int(14));
  job.totals.set_items(row.Int(15));
  job.totals.set_items_completed(row.Int(16));
  job.totals.set_items_failed(row.Int(17));
  job.queued_units = row.Int(18);
  job.leased_units = row.Int(19);
  job.last_sequence = row.Int(20);
  job.pinned_kind = row.Text(21);
  job.worker_kinds = FromJson(row.Bytes(22));
  job.failure.set_reason(row.Text(23));
  job.failure.set_message(row.Text(24));
  return job;
}

std::string WriteEnds(const std::vector<int64_t>& ends) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  int64_t last = 0;
  for (const int64_t end : ends) {
    coded.WriteVarint64(static_cast<uint64_t>(end - last));
    last = end;
  }
  coded.Trim();
  return bytes;
}

// False: they are damaged.
bool ReadEnds(absl::string_view bytes, std::vector<int64_t>& ends) {
  google::protobuf::io::CodedInputStream coded(reinterpret_cast<const uint8_t*>(bytes.data()),
                                               static_cast<int>(bytes.size()));
  int64_t last = 0;
  uint64_t items = 0;
  while (coded.CurrentPosition() < static_cast<int>(bytes.size())) {
    if (!coded.ReadVarint64(&items)) return false;
    last += static_cast<int64_t>(items);
    ends.push_back(last);
  }
  return true;
}

bool IsLeasable(const JobRow& job) {
  return job.queued_units > 0 &&
         (job.state == v1::EvalJob::STATE_PENDING || job.state == v1::EvalJob::STATE_RUNNING);
}

}  // namespace

absl::StatusOr<std::optional<JobRow>> SqliteTransaction::FindJob(absl::string_view id) {
  return connection_.QueryOne(HOPSCOPE_SELECT_JOBS " WHERE id = ?1", ReadJob, id);
}

absl::StatusOr<std::optional<JobRow>> SqliteTransaction::GetJob(JobKey key) {
  return connection_.QueryOne(HOPSCOPE_SELECT_JOBS " WHERE key = ?1", ReadJob, key);
}

absl::StatusOr<std::optional<JobRow>> SqliteTransaction::FindRequest(absl::string_view tenant,
                                                                     absl::string_view request_id) {
  return connection_.QueryOne(
      HOPSCOPE_SELECT_JOBS
      " WHERE key = (SELECT job FROM requests WHERE tenant = ?1 AND request_id = ?2)",
      ReadJob, tenant, request_id);
}

absl::StatusOr<JobPlanRow> SqliteTransaction::GetJobPlan(JobKey key) {
  bool damaged = false;
  HOPSCOPE_ASSIGN_OR_RETURN(
      std::optional<JobPlanRow> plan,
      connection_.QueryOne(
          "SELECT spec, estimate, warnings, request_id, traceparent FROM job_plans WHERE job = ?1",
          [&damaged](const SqliteStatement& row) {
            JobPlanRow plan;
            ParseProto(row.Bytes(0), plan.spec, damaged);
            ParseProto(row.Bytes(1), plan.estimate, damaged);
            plan.warnings = FromJson(row.Bytes(2));
            plan.request_id = row.Text(3);
            plan.traceparent = row.Text(4);
            return plan;
          },
          key));
  if (damaged) return DamagedProto("plan");
  if (!plan.has_value()) {
    return common::MakeError(absl::StatusCode::kNotFound, "JOB_NOT_FOUND", "there is no such job");
  }
  HOPSCOPE_ASSIGN_OR_RETURN(
      plan->checkpoints,
      connection_.QueryAll(
          "SELECT name, digest, family, weight_bytes, layers, heads FROM job_checkpoints "
          "WHERE job = ?1 ORDER BY position",
          [](const SqliteStatement& row) {
            CheckpointRow checkpoint;
            checkpoint.ref.set_name(row.Text(0));
            checkpoint.ref.set_digest(row.Text(1));
            checkpoint.family = row.Text(2);
            checkpoint.weight_bytes = row.Int(3);
            checkpoint.layers = static_cast<int32_t>(row.Int(4));
            checkpoint.heads = static_cast<int32_t>(row.Int(5));
            return checkpoint;
          },
          key));
  HOPSCOPE_ASSIGN_OR_RETURN(plan->cuts,
                            connection_.QueryAll(
                                "SELECT task, checkpoint, ends FROM job_cuts WHERE job = ?1 "
                                "ORDER BY task, checkpoint",
                                [&damaged](const SqliteStatement& row) {
                                  CutRow cut;
                                  cut.task = static_cast<int32_t>(row.Int(0));
                                  cut.checkpoint = static_cast<int32_t>(row.Int(1));
                                  if (!ReadEnds(row.Bytes(2), cut.ends)) damaged = true;
                                  return cut;
                                },
                                key));
  if (damaged) return DamagedProto("cut");
  return *std::move(plan);
}

absl::StatusOr<std::vector<JobRow>> SqliteTransaction::ListJobs(const JobQuery& query) {
  // The first label is looked up in its index, which has the list's order; the others are checked
  // row by row.
  std::string sql;
  std::vector<std::string> conditions;
  std::string create_time = "create_time";
  std::string key = "key";
  if (query.labels.empty()) {
    sql = HOPSCOPE_SELECT_JOBS;
  } else {
    sql = absl::StrCat("SELECT j.* FROM job_labels l JOIN (", HOPSCOPE_SELECT_JOBS,
                       ") j ON j.key = l.job");
    conditions.push_back("l.key = ? AND l.value = ?");
    create_time = "l.create_time";
    key = "l.job";
    for (size_t i = 1; i < query.labels.size(); ++i) {
      conditions.push_back(
          "EXISTS (SELECT 1 FROM job_labels m WHERE m.key = ? AND m.value = ? AND m.create_time = "
          "l.create_time AND m.job = l.job)");
    }
  }
  if (query.state.has_value()) conditions.push_back("state = ?");
  if (query.created_from.has_value()) conditions.push_back(create_time + " >= ?");
  if (query.created_before.has_value()) conditions.push_back(create_time + " < ?");
  if (query.after.has_value()) {
    conditions.push_back(absl::StrCat("(", create_time, ", ", key, ")",
                                      query.newest_first ? " < " : " > ", "(?, ?)"));
  }
  for (size_t i = 0; i < conditions.size(); ++i) {
    absl::StrAppend(&sql, i == 0 ? " WHERE " : " AND ", conditions[i]);
  }
  const char* direction = query.newest_first ? " DESC" : "";
  absl::StrAppend(&sql, " ORDER BY ", create_time, direction, ", ", key, direction, " LIMIT ?");

  HOPSCOPE_ASSIGN_OR_RETURN(SqliteStatement statement, connection_.Prepare(sql));
  for (const auto& [label, value] : query.labels) statement.Bind(label, value);
  if (query.state.has_value()) statement.Bind(*query.state);
  if (query.created_from.has_value()) statement.Bind(*query.created_from);
  if (query.created_before.has_value()) statement.Bind(*query.created_before);
  if (query.after.has_value()) statement.Bind(query.after->create_time, query.after->key);
  statement.Bind(query.limit);
  std::vector<JobRow> jobs;
  for (;;) {
    HOPSCOPE_ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return jobs;
    jobs.push_back(ReadJob(statement));
  }
}

absl::StatusOr<std::vector<QueueHead>> SqliteTransaction::QueueHeads() {
  // One index search a head, however many jobs stand behind it.
  const auto read = [](const SqliteStatement& row) {
    return QueueHead{.priority = static_cast<int32_t>(row.Int(0)), .tenant = row.Text(1)};
  };
  std::vector<QueueHead> heads;
  HOPSCOPE_ASSIGN_OR_RETURN(std::optional<QueueHead> head,
                            connection_.QueryOne("SELECT priority, tenant FROM jobs "
                                                 "WHERE is_leasable = 1 "
                                                 "ORDER BY priority DESC, tenant LIMIT 1",
                                                 read));
  while (head.has_value()) {
    heads.push_back(*std::move(head));
    HOPSCOPE_ASSIGN_OR_RETURN(
        head, connection_.QueryOne("SELECT priority, tenant FROM jobs "
                                   "WHERE is_leasable = 1 AND priority = ?1 AND tenant > ?2 "
                                   "ORDER BY priority DESC, tenant LIMIT 1",
                                   read, heads.back().priority, heads.back().tenant));
    if (head.has_value()) continue;
    HOPSCOPE_ASSIGN_OR_RETURN(head, connection_.QueryOne("SELECT priority, tenant FROM jobs "
                                                         "WHERE is_leasable = 1 AND priority < ?1 "
                                                         "ORDER BY priority DESC, tenant LIMIT 1",
                                                         read, heads.back().priority));
  }
  return heads;
}

absl::StatusOr<std::vector<JobRow>> SqliteTransaction::QueuedJobs(
    const QueueHead& head, const std::optional<JobCursor>& after, int limit) {
  return connection_.QueryAll(
      HOPSCOPE_SELECT_JOBS
      " WHERE is_leasable = 1 AND priority = ?1 AND tenant = ?2 AND (create_time, key) > (?3, ?4) "
      "ORDER BY create_time, key LIMIT ?5",
      ReadJob, head.priority, head.tenant, after.has_value() ? after->create_time : absl::Time(),
      after.has_value() ? after->key : -1, limit);
}

absl::StatusOr<std::vector<TenantLeases>> SqliteTransaction::LeasesByTenant() {
  return connection_.QueryAll(
      "SELECT tenant, SUM(leased_units) FROM jobs WHERE is_leased = 1 GROUP BY tenant",
      [](const SqliteStatement& row) {
        return TenantLeases{.tenant = row.Text(0), .leased_units = row.Int(1)};
      });
}

absl::StatusOr<std::vector<JobRow>> SqliteTransaction::JobsPastDeadline(absl::Time now, int limit) {
  return connection_.QueryAll(HOPSCOPE_SELECT_JOBS
                              " WHERE deadline IS NOT NULL AND end_time IS NULL AND deadline <= ?1 "
                              "ORDER BY deadline LIMIT ?2",
                              ReadJob, now, limit);
}

absl::StatusOr<StateCounts> SqliteTransaction::CountStates() {
  StateCounts counts;
  HOPSCOPE_ASSIGN_OR_RETURN(
      counts.jobs, connection_.QueryAll(
                       "SELECT state, COUNT(*) FROM jobs INDEXED BY jobs_by_state GROUP BY state",
                       [](const SqliteStatement& row) {
                         return std::pair(static_cast<v1::EvalJob::State>(row.Int(0)), row.Int(1));
                       }));
  HOPSCOPE_ASSIGN_OR_RETURN(
      const std::optional<int64_t> queued,
      connection_.QueryOne("SELECT COALESCE(SUM(queued_units), 0) FROM jobs WHERE is_leasable = 1",
                           [](const SqliteStatement& row) { return row.Int(0); }));
  counts.queued_units = queued.value_or(0);
  HOPSCOPE_ASSIGN_OR_RETURN(
      const std::optional<int64_t> leased,
      connection_.QueryOne("SELECT COALESCE(SUM(leased_units), 0) FROM jobs WHERE is_leased = 1",
                           [](const SqliteStatement& row) { return row.Int(0); }));
  counts.leased_units = leased.value_or(0);
  HOPSCOPE_ASSIGN_OR_RETURN(
      counts.workers,
      connection_.QueryAll("SELECT state, device, COUNT(*) FROM workers GROUP BY state, device",
                           [](const SqliteStatement& row) {
                             return StateCounts::Workers{
                                 .state = static_cast<v1::Worker::State>(row.Int(0)),
                                 .device = row.Text(1),
                                 .count = row.Int(2)};
                           }));
  return counts;
}

absl::StatusOr<JobKey> SqliteTransaction::InsertJob(const JobRow& row, const JobPlanRow& plan) {
  HOPSCOPE_RETURN_IF_ERROR(connection_.Run(
      "INSERT INTO jobs (id, tenant, priority, create_time, deadline, state, is_leasable, "
      "is_leased, start_time, end_time, cells, cells_completed, cells_failed, units, "
      "units_completed, units_failed, items, items_completed, items_failed, queued_units, "
      "leased_units, last_sequence, pinned_kind, worker_kinds, failure_reason, failure_message) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      row.id, row.tenant, row.priority, row.create_time, row.deadline, row.state, IsLeasable(row),
      row.leased_units > 0, row.start_time, row.end_time, row.totals.cells(),
      row.totals.cells_completed(), row.totals.cells_failed(), row.totals.units(),
      row.totals.units_completed(), row.totals.units_failed(), row.totals.items(),
      row.totals.items_completed(), row.totals.items_failed(), row.queued_units, row.leased_units,
      row.last_sequence, row.pinned_kind, ToJson(row.worker_kinds), row.failure.reason(),
      row.failure.message()));
  const JobKey key = connection_.LastInsertKey();
  HOPSCOPE_RETURN_IF_ERROR(connection_.Run(
      "INSERT INTO job_plans (job, spec, estimate, warnings, request_id, traceparent) "
      "VALUES (?, ?, ?, ?, ?, ?)",
      key, Blob{plan.spec.SerializeAsString()}, Blob{plan.estimate.SerializeAsString()},
      ToJson(plan.warnings), plan.request_id, plan.traceparent));
  for (size_t i = 0; i < plan.checkpoints.size(); ++i) {
    const CheckpointRow& checkpoint = plan.checkpoints[i];
    HOPSCOPE_RETURN_IF_ERROR(connection_.Run(
        "INSERT INTO job_checkpoints (job, position, name, digest, family, weight_bytes, layers, "
        "heads) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        key, i, checkpoint.ref.name(), checkpoint.ref.digest(), checkpoint.family,
        checkpoint.weight_bytes, checkpoint.layers, checkpoint.heads));
  }
  for (const CutRow& cut : plan.cuts) {
    HOPSCOPE_RETURN_IF_ERROR(
        connection_.Run("INSERT INTO job_cuts (job, task, checkpoint, ends) VALUES (?, ?, ?, ?)",
                        key, cut.task, cut.checkpoint, Blob{WriteEnds(cut.ends)}));
  }
  for (const auto& [label, value] : plan.spec.labels()) {
    HOPSCOPE_RETURN_IF_ERROR(
        connection_.Run("INSERT INTO job_labels (key, value, create_time, job) VALUES (?, ?, ?, ?)",
                        label, value, row.create_time, key));
  }
  if (!plan.request_id.empty()) {
    HOPSCOPE_RETURN_IF_ERROR(
        connection_.Run("INSERT INTO requests (tenant, request_id, job) VALUES (?, ?, ?)",
                        row.tenant, plan.request_id, key));
  }
  return key;
}

absl::Status SqliteTransaction::UpdateJob(const JobRow& row) {
  HOPSCOPE_RETURN_IF_ERROR(connection_.RunOnRow(
      "UPDATE jobs SET start_time = ?, cells_completed = ?, cells_failed = ?, units_completed = ?, "
      "units_failed = ?, items_completed = ?, items_failed = ?, queued_units = ?, leased_units = "
      "?, "
      "last_sequence = ?, pinned_kind = ?, worker_kinds = ?, failure_reason = ?, "
      "failure_message = ? WHERE key = ?",
      row.start_time, row.totals.cells_completed(), row.totals.cells_failed(),
      row.totals.units_completed(), row.totals.units_failed(), row.totals.items_completed(),
      row.totals.items_failed(), row.queued_units, row.leased_units, row.last_sequence,
      row.pinned_kind, ToJson(row.worker_kinds), row.failure.reason(), row.failure.message(),
      row.key));
  // What indexes depend on, only where it changed.
  return connection_.Run(
      "UPDATE jobs SET state = ?1, is_leasable = ?2, is_leased = ?3, end_time = ?4 WHERE key = ?5 "
      "AND (state <> ?1 OR is_leasable <> ?2 OR is_leased <> ?3 OR end_time IS NOT ?4)",
      row.state, IsLeasable(row), row.leased_units > 0, row.end_time, row.key);
}

}  // namespace hopscope::store

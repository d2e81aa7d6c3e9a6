// Workers, and the events of jobs.
#include <utility>

#include "server/store/sqlite_proto.h"
#include "server/store/sqlite_transaction.h"

namespace hopscope::store {
namespace {

#define HOPSCOPE_SELECT_WORKERS \
  "SELECT id, description, state, register_time, heartbeat_time, drain_wish FROM workers"

// Reads workers; `damaged` must outlive it.
auto WorkerReader(bool& damaged) {
  return [&damaged](const SqliteStatement& row) {
    WorkerRow worker;
    worker.id = row.Text(0);
    ParseProto(row.Bytes(1), worker.description, damaged);
    worker.state = static_cast<v1::Worker::State>(row.Int(2));
    worker.register_time = row.Time(3);
    worker.heartbeat_time = row.Time(4);
    worker.drain_wish = row.Int(5) != 0;
    return worker;
  };
}

}  // namespace

absl::StatusOr<std::vector<v1::EvalEvent>> SqliteTransaction::ListEvents(JobKey job,
                                                                         int64_t after_sequence,
                                                                         int limit,
                                                                         int64_t max_bytes) {
  HOPSCOPE_ASSIGN_OR_RETURN(
      SqliteStatement statement,
      connection_.Prepare("SELECT sequence, event FROM events WHERE job = ?1 AND sequence > ?2 "
                          "ORDER BY sequence LIMIT ?3"));
  statement.Bind(job, after_sequence, limit);
  std::vector<v1::EvalEvent> events;
  int64_t bytes = 0;
  while (bytes < max_bytes) {
    HOPSCOPE_ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) break;
    bool damaged = false;
    v1::EvalEvent& event = events.emplace_back();
    ParseProto(statement.Bytes(1), event, damaged);
    if (damaged) return DamagedProto("event");
    event.set_sequence(statement.Int(0));
    bytes += static_cast<int64_t>(statement.Bytes(1).size());
  }
  return events;
}

absl::Status SqliteTransaction::InsertEvent(JobKey job, const v1::EvalEvent& event) {
  return connection_.Run("INSERT INTO events (job, sequence, event) VALUES (?, ?, ?)", job,
                         event.sequence(), Blob{event.SerializeAsString()});
}

absl::StatusOr<std::optional<WorkerRow>> SqliteTransaction::GetWorker(absl::string_view id) {
  bool damaged = false;
  auto worker =
      connection_.QueryOne(HOPSCOPE_SELECT_WORKERS " WHERE id = ?1", WorkerReader(damaged), id);
  if (damaged) return DamagedProto("worker");
  return worker;
}

absl::StatusOr<std::vector<WorkerRow>> SqliteTransaction::ListWorkers() {
  bool damaged = false;
  auto workers =
      connection_.QueryAll(HOPSCOPE_SELECT_WORKERS " ORDER BY id", WorkerReader(damaged));
  if (damaged) return DamagedProto("worker");
  return workers;
}

absl::StatusOr<std::vector<WorkerRow>> SqliteTransaction::SilentWorkers(absl::Time time,
                                                                        int limit) {
  bool damaged = false;
  auto workers = connection_.QueryAll(HOPSCOPE_SELECT_WORKERS
                                      " WHERE state <> ?1 AND heartbeat_time <= ?2 "
                                      "ORDER BY id LIMIT ?3",
                                      WorkerReader(damaged), v1::Worker::STATE_LOST, time, limit);
  if (damaged) return DamagedProto("worker");
  return workers;
}

absl::Status SqliteTransaction::PutWorker(const WorkerRow& row) {
  return connection_.Run(
      "INSERT INTO workers (id, description, device, state, register_time, heartbeat_time, "
      "drain_wish) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO UPDATE SET "
      "description = ?2, device = ?3, state = ?4, register_time = ?5, heartbeat_time = ?6, "
      "drain_wish = ?7",
      row.id, Blob{row.description.SerializeAsString()}, row.description.device(), row.state,
      row.register_time, row.heartbeat_time, row.drain_wish);
}

absl::Status SqliteTransaction::DeleteLostWorkers(absl::Time time) {
  return connection_.Run("DELETE FROM workers WHERE state = ?1 AND heartbeat_time <= ?2",
                         v1::Worker::STATE_LOST, time);
}

}  // namespace hopscope::store

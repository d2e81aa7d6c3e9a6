#include "server/store/sqlite_schema.h"

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace hopscope::store {
namespace {

// Times are microseconds since 1970, UTC; enums have the numbers of their proto or of rows.h; blobs
// are serialised protos. Columns named `is_...` repeat a condition over other columns for a partial
// index: they are written only when they change, so that the counters beside them can be updated
// without touching the index.
constexpr const char* kMigrations[] = {
    R"sql(
CREATE TABLE jobs (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  tenant TEXT NOT NULL,
  priority INTEGER NOT NULL,
  create_time INTEGER NOT NULL,
  deadline INTEGER,
  state INTEGER NOT NULL,
  is_leasable INTEGER NOT NULL,  -- queued_units > 0 in state PENDING or RUNNING
  is_leased INTEGER NOT NULL,    -- leased_units > 0
  start_time INTEGER,
  end_time INTEGER,
  cells INTEGER NOT NULL,
  cells_completed INTEGER NOT NULL,
  cells_failed INTEGER NOT NULL,
  units INTEGER NOT NULL,
  units_completed INTEGER NOT NULL,
  units_failed INTEGER NOT NULL,
  items INTEGER NOT NULL,
  items_completed INTEGER NOT NULL,
  items_failed INTEGER NOT NULL,
  queued_units INTEGER NOT NULL,
  leased_units INTEGER NOT NULL,
  last_sequence INTEGER NOT NULL,
  pinned_kind TEXT NOT NULL,
  worker_kinds TEXT NOT NULL,    -- a JSON list
  failure_reason TEXT NOT NULL,  -- empty: none
  failure_message TEXT NOT NULL
) STRICT;
CREATE INDEX jobs_by_create_time ON jobs (create_time, key);
CREATE INDEX jobs_by_state ON jobs (state, create_time, key);
CREATE INDEX jobs_leasable ON jobs (priority DESC, tenant, create_time, key) WHERE is_leasable = 1;
CREATE INDEX jobs_leased ON jobs (tenant) WHERE is_leased = 1;
CREATE INDEX jobs_with_deadline ON jobs (deadline) WHERE deadline IS NOT NULL AND end_time IS NULL;

CREATE TABLE job_plans (
  job INTEGER PRIMARY KEY REFERENCES jobs (key) ON DELETE CASCADE,
  spec BLOB NOT NULL,
  estimate BLOB NOT NULL,
  warnings TEXT NOT NULL,  -- a JSON list
  request_id TEXT NOT NULL,
  traceparent TEXT NOT NULL
) STRICT;

CREATE TABLE job_checkpoints (
  job INTEGER NOT NULL REFERENCES jobs (key) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  digest TEXT NOT NULL,
  family TEXT NOT NULL,
  weight_bytes INTEGER NOT NULL,
  layers INTEGER NOT NULL,
  heads INTEGER NOT NULL,
  PRIMARY KEY (job, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE job_labels (
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  create_time INTEGER NOT NULL,
  job INTEGER NOT NULL REFERENCES jobs (key) ON DELETE CASCADE,
  PRIMARY KEY (key, value, create_time, job)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_labels_by_job ON job_labels (job);

CREATE TABLE requests (
  tenant TEXT NOT NULL,
  request_id TEXT NOT NULL,
  job INTEGER NOT NULL REFERENCES jobs (key) ON DELETE CASCADE,
  PRIMARY KEY (tenant, request_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX requests_by_job ON requests (job);

CREATE TABLE cells (
  job INTEGER NOT NULL REFERENCES jobs (key) ON DELETE CASCADE,
  cell INTEGER NOT NULL,
  checkpoint INTEGER NOT NULL,
  task INTEGER NOT NULL,
  hops INTEGER NOT NULL,
  added_tokens INTEGER NOT NULL,
  seed INTEGER NOT NULL,
  items INTEGER NOT NULL,
  items_per_unit INTEGER NOT NULL,
  flops_per_item REAL NOT NULL,
  state INTEGER NOT NULL,
  is_leasable INTEGER NOT NULL,  -- RUNNING, and next_unit is one of its units
  next_unit INTEGER NOT NULL,
  units_completed INTEGER NOT NULL,
  items_completed INTEGER NOT NULL,
  merged_units INTEGER NOT NULL,
  scored_items INTEGER NOT NULL,
  failed_items INTEGER NOT NULL,
  correct_items INTEGER NOT NULL,
  failure_reason TEXT NOT NULL,
  failure_message TEXT NOT NULL,
  PRIMARY KEY (job, cell)
) STRICT, WITHOUT ROWID;
CREATE INDEX cells_leasable ON cells (job, cell) WHERE is_leasable = 1;
CREATE INDEX cells_leasable_by_checkpoint ON cells (job, checkpoint, cell) WHERE is_leasable = 1;

CREATE TABLE merges (
  job INTEGER NOT NULL,
  cell INTEGER NOT NULL,
  merge BLOB NOT NULL,
  PRIMARY KEY (job, cell),
  FOREIGN KEY (job, cell) REFERENCES cells (job, cell) ON DELETE CASCADE
) STRICT;

CREATE TABLE units (
  job INTEGER NOT NULL,
  cell INTEGER NOT NULL,
  unit INTEGER NOT NULL,
  state INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  failed_attempts INTEGER NOT NULL,
  queued_time INTEGER NOT NULL,
  PRIMARY KEY (job, cell, unit),
  FOREIGN KEY (job, cell) REFERENCES cells (job, cell) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX units_queued ON units (job, cell, unit) WHERE state = 1;

CREATE TABLE unmerged_results (
  job INTEGER NOT NULL,
  cell INTEGER NOT NULL,
  unit INTEGER NOT NULL,
  result BLOB NOT NULL,
  PRIMARY KEY (job, cell, unit),
  FOREIGN KEY (job, cell, unit) REFERENCES units (job, cell, unit) ON DELETE CASCADE
) STRICT;

CREATE TABLE attempts (
  job INTEGER NOT NULL,
  cell INTEGER NOT NULL,
  unit INTEGER NOT NULL,
  number INTEGER NOT NULL,
  nonce INTEGER NOT NULL,
  worker TEXT NOT NULL,
  state INTEGER NOT NULL,
  start_time INTEGER NOT NULL,
  end_time INTEGER,
  lease_expiry INTEGER,
  failure_reason TEXT NOT NULL,
  failure_message TEXT NOT NULL,
  PRIMARY KEY (job, cell, unit, number),
  FOREIGN KEY (job, cell, unit) REFERENCES units (job, cell, unit) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX leases_by_worker ON attempts (worker, lease_expiry) WHERE lease_expiry IS NOT NULL;
CREATE INDEX leases_by_job ON attempts (job, cell) WHERE lease_expiry IS NOT NULL;

CREATE TABLE report_parts (
  job INTEGER NOT NULL,
  cell INTEGER NOT NULL,
  unit INTEGER NOT NULL,
  number INTEGER NOT NULL,
  part INTEGER NOT NULL,
  part_count INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (job, cell, unit, number, part),
  FOREIGN KEY (job, cell, unit, number) REFERENCES attempts (job, cell, unit, number)
    ON DELETE CASCADE
) STRICT;

CREATE TABLE events (
  job INTEGER NOT NULL REFERENCES jobs (key) ON DELETE CASCADE,
  sequence INTEGER NOT NULL,
  event BLOB NOT NULL,
  PRIMARY KEY (job, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE workers (
  id TEXT PRIMARY KEY,
  description BLOB NOT NULL,
  device TEXT NOT NULL,
  state INTEGER NOT NULL,
  register_time INTEGER NOT NULL,
  heartbeat_time INTEGER NOT NULL,
  drain_wish INTEGER NOT NULL
) STRICT;

CREATE TABLE probe (id INTEGER PRIMARY KEY CHECK (id = 0), count INTEGER NOT NULL) STRICT;
INSERT INTO probe VALUES (0, 0);
)sql",
    R"sql(
ALTER TABLE cells ADD COLUMN cut_units INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cells ADD COLUMN unlabelled_items INTEGER NOT NULL DEFAULT 0;

CREATE TABLE job_cuts (
  job INTEGER NOT NULL REFERENCES jobs (key) ON DELETE CASCADE,
  task INTEGER NOT NULL,
  checkpoint INTEGER NOT NULL,
  ends BLOB NOT NULL,  -- the differences, as varints
  PRIMARY KEY (job, task, checkpoint)
) STRICT;

CREATE TABLE tokens (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant TEXT NOT NULL,
  digest TEXT NOT NULL,  -- empty: the upload goes on
  bytes INTEGER NOT NULL,
  sequences INTEGER NOT NULL,
  use_time INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX tokens_by_digest ON tokens (digest, tenant) WHERE digest <> '';
CREATE INDEX tokens_by_tenant ON tokens (tenant);
CREATE INDEX tokens_by_use_time ON tokens (use_time);

CREATE TABLE tokens_chunks (
  tokens INTEGER NOT NULL REFERENCES tokens (key) ON DELETE CASCADE,
  chunk INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (tokens, chunk)
) STRICT;

CREATE TABLE tokens_indexes (
  tokens INTEGER PRIMARY KEY REFERENCES tokens (key) ON DELETE CASCADE,
  entries BLOB NOT NULL
) STRICT;

CREATE TABLE job_tokens (
  job INTEGER NOT NULL REFERENCES jobs (key) ON DELETE CASCADE,
  tokens INTEGER NOT NULL REFERENCES tokens (key),
  PRIMARY KEY (job, tokens)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_tokens_by_tokens ON job_tokens (tokens);
)sql",
};

}  // namespace

int SqliteSchemaVersion() { return std::size(kMigrations); }

absl::Status MigrateSqliteSchema(SqliteConnection& connection) {
  HOPSCOPE_RETURN_IF_ERROR(connection.ExecuteScript(
      "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL) STRICT"));
  HOPSCOPE_ASSIGN_OR_RETURN(
      const std::optional<int64_t> found,
      connection.QueryOne("SELECT MAX(version) FROM schema_version",
                          [](const SqliteStatement& row) { return row.Int(0); }));
  const int64_t version = found.value_or(0);
  if (version > SqliteSchemaVersion()) {
    return common::MakeError(
        absl::StatusCode::kFailedPrecondition, "STORE_SCHEMA_NEWER",
        absl::StrCat("the store has schema version ", version,
                     ", which a newer program wrote; this one knows version ",
                     SqliteSchemaVersion(), ": run the newer program, or use another state_dir"),
        {{"found", absl::StrCat(version)}, {"known", absl::StrCat(SqliteSchemaVersion())}});
  }
  for (int64_t next = version; next < SqliteSchemaVersion(); ++next) {
    const absl::Status status = connection.ExecuteScript(
        absl::StrCat("BEGIN IMMEDIATE;", kMigrations[next], "DELETE FROM schema_version;",
                     "INSERT INTO schema_version VALUES (", next + 1, "); COMMIT;"));
    if (!status.ok()) {
      if (connection.InTransaction()) connection.ExecuteScript("ROLLBACK").IgnoreError();
      return common::Annotate(status, absl::StrCat("migrating the store to version ", next + 1));
    }
  }
  return absl::OkStatus();
}

}  // namespace hopscope::store

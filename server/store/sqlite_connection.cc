#include "server/store/sqlite_connection.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace hopscope::store {

SqliteStatement::~SqliteStatement() {
  if (statement_ == nullptr) return;
  // Both return the error of the last step again, which Step has told already.
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

absl::StatusOr<bool> SqliteStatement::Step() {
  if (bind_code_ != SQLITE_OK) {
    return connection_->Fail(bind_code_, sqlite3_sql(statement_));
  }
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return connection_->Fail(code, sqlite3_sql(statement_));
}

absl::string_view SqliteStatement::Bytes(int column) const {
  const void* bytes = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return absl::string_view(static_cast<const char*>(bytes), bytes == nullptr ? 0 : size);
}

void SqliteStatement::BindText(absl::string_view text) {
  // A null pointer would bind NULL.
  Remember(sqlite3_bind_text64(statement_, ++bound_, text.data() == nullptr ? "" : text.data(),
                               text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

void SqliteStatement::BindBlob(absl::string_view bytes) {
  Remember(sqlite3_bind_blob64(statement_, ++bound_, bytes.data() == nullptr ? "" : bytes.data(),
                               bytes.size(), SQLITE_TRANSIENT));
}

absl::StatusOr<std::unique_ptr<SqliteConnection>> SqliteConnection::Open(const Options& options) {
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(
      options.path.c_str(), &database,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
      options.vfs.empty() ? nullptr : options.vfs.c_str());
  if (database == nullptr) {
    return common::MakeError(absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE",
                             "no memory for the store");
  }
  auto connection = std::unique_ptr<SqliteConnection>(new SqliteConnection(database));
  if (code != SQLITE_OK) return connection->Fail(code, absl::StrCat("opening ", options.path));
  sqlite3_busy_timeout(database, static_cast<int>(absl::ToInt64Milliseconds(options.busy_timeout)));
  // temp_store: the journals of savepoints stay in memory.
  absl::Status status = connection->ExecuteScript(
      absl::StrCat("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"
                   "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -",
                   options.cache_kib, ";", options.query_only ? "PRAGMA query_only = ON;" : ""));
  if (!status.ok()) return common::Annotate(status, absl::StrCat("opening ", options.path));
  return connection;
}

SqliteConnection::~SqliteConnection() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close_v2(database_);
}

absl::StatusOr<SqliteStatement> SqliteConnection::Prepare(absl::string_view sql) {
  const auto found = statements_.find(sql);
  if (found != statements_.end()) return SqliteStatement(this, found->second);
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(database_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, /*pzTail=*/nullptr);
  if (code != SQLITE_OK) return Fail(code, sql);
  statements_.emplace(sql, statement);
  return SqliteStatement(this, statement);
}

absl::Status SqliteConnection::ExecuteScript(const std::string& sql) {
  const int code = sqlite3_exec(database_, sql.c_str(), /*callback=*/nullptr, /*data=*/nullptr,
                                /*errmsg=*/nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Fail(code, sql);
}

absl::Status SqliteConnection::TakeStoreError() {
  return std::exchange(store_error_, absl::OkStatus());
}

absl::Status SqliteConnection::Fail(int code, absl::string_view what) {
  const std::string cause = absl::StrCat(sqlite3_errmsg(database_), " (", sqlite3_errstr(code),
                                         ", SQLite code ", code, ")");
  absl::Status status;
  switch (code & 0xff) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_NOMEM:
    case SQLITE_PROTOCOL:
    case SQLITE_NOLFS:
      status = common::MakeError(absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE",
                                 absl::StrCat("the store cannot be used now: ", cause));
      break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
      status = common::MakeError(absl::StatusCode::kDataLoss, "STORE_CORRUPT",
                                 absl::StrCat("the store's file is damaged: ", cause));
      break;
    default:
      status = common::MakeError(absl::StatusCode::kInternal, "STORE_ERROR",
                                 absl::StrCat("the store failed: ", cause, " at: ", what));
  }
  if (store_error_.ok()) store_error_ = status;
  return status;
}

absl::Status SqliteConnection::NoSuchRow(absl::string_view sql) {
  const absl::Status status =
      common::MakeError(absl::StatusCode::kInternal, "STORE_ERROR",
                        absl::StrCat("the store has no such row at: ", sql));
  if (store_error_.ok()) store_error_ = status;
  return status;
}

}  // namespace hopscope::store

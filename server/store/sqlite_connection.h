// The one place that talks to SQLite: a connection with cached prepared statements, and SQLite's
// errors as absl::Status.
//
// Errors: a full disk, an I/O error, a lock held by another program, or no memory is UNAVAILABLE
// (STORE_UNAVAILABLE); a damaged file is DATA_LOSS (STORE_CORRUPT); anything else is INTERNAL
// (STORE_ERROR), a bug. A connection is used by one thread at a time; statements must not outlive
// it.
#ifndef HOPSCOPE_SERVER_STORE_SQLITE_CONNECTION_H_
#define HOPSCOPE_SERVER_STORE_SQLITE_CONNECTION_H_

#include <sqlite3.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/status.h"

namespace hopscope::store {

// Bytes that are bound as a BLOB rather than as TEXT.
struct Blob {
  absl::string_view bytes;
};

class SqliteConnection;

// One use of a prepared statement: bind, step, read columns. Goes back to the cache, reset, when it
// is destroyed.
class SqliteStatement {
 public:
  SqliteStatement(SqliteConnection* connection, sqlite3_stmt* statement)
      : connection_(connection), statement_(statement) {}
  SqliteStatement(SqliteStatement&& other) noexcept
      : connection_(other.connection_), statement_(other.statement_), bound_(other.bound_) {
    other.statement_ = nullptr;
  }
  SqliteStatement& operator=(SqliteStatement&&) = delete;
  ~SqliteStatement();

  // Binds the next parameters (?1, ?2, ...), copying text and blobs.
  template <typename... Values>
  void Bind(const Values&... values) {
    (BindNext(values), ...);
  }

  // True: there is a row, whose columns may be read until the next Step.
  absl::StatusOr<bool> Step();

  bool IsNull(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  int64_t Int(int column) const { return sqlite3_column_int64(statement_, column); }
  double Double(int column) const { return sqlite3_column_double(statement_, column); }
  std::string Text(int column) const { return std::string(Bytes(column)); }
  // Valid until the next Step.
  absl::string_view Bytes(int column) const;
  absl::Time Time(int column) const { return absl::FromUnixMicros(Int(column)); }
  std::optional<absl::Time> OptionalTime(int column) const {
    return IsNull(column) ? std::nullopt : std::optional<absl::Time>(Time(column));
  }

 private:
  template <typename Value>
  void BindNext(const Value& value) {
    if constexpr (std::is_enum_v<Value> || std::integral<Value>) {
      Remember(sqlite3_bind_int64(statement_, ++bound_, static_cast<int64_t>(value)));
    } else if constexpr (std::floating_point<Value>) {
      Remember(sqlite3_bind_double(statement_, ++bound_, value));
    } else if constexpr (std::same_as<Value, absl::Time>) {
      BindNext(absl::ToUnixMicros(value));
    } else if constexpr (std::same_as<Value, Blob>) {
      BindBlob(value.bytes);
    } else if constexpr (std::convertible_to<Value, absl::string_view>) {
      BindText(value);
    } else {
      // An optional.
      if (value.has_value()) {
        BindNext(*value);
      } else {
        Remember(sqlite3_bind_null(statement_, ++bound_));
      }
    }
  }
  void BindText(absl::string_view text);
  void BindBlob(absl::string_view bytes);
  void Remember(int code) {
    if (bind_code_ == SQLITE_OK) bind_code_ = code;
  }

  SqliteConnection* const connection_;
  sqlite3_stmt* statement_;
  int bound_ = 0;
  int bind_code_ = SQLITE_OK;
};

class SqliteConnection {
 public:
  struct Options {
    std::string path;
    std::string vfs;  // name of a registered VFS; empty: SQLite's default
    int64_t cache_kib = 8192;
    absl::Duration busy_timeout = absl::Seconds(5);
    bool query_only = false;
  };

  // Opens or creates the file, in WAL mode with synchronous=FULL and foreign keys enforced.
  static absl::StatusOr<std::unique_ptr<SqliteConnection>> Open(const Options& options);
  ~SqliteConnection();
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  // `sql` is one statement; it is prepared once and kept. It must not be in use already.
  absl::StatusOr<SqliteStatement> Prepare(absl::string_view sql);

  // Runs one or more statements that are not kept and whose rows do not matter.
  absl::Status ExecuteScript(const std::string& sql);

  // Runs a statement to its end.
  template <typename... Values>
  absl::Status Run(absl::string_view sql, const Values&... values) {
    HOPSCOPE_ASSIGN_OR_RETURN(SqliteStatement statement, Prepare(sql));
    statement.Bind(values...);
    for (;;) {
      HOPSCOPE_ASSIGN_OR_RETURN(const bool row, statement.Step());
      if (!row) return absl::OkStatus();
    }
  }

  // As Run, but INTERNAL where it changed no row: for updates of what must be there.
  template <typename... Values>
  absl::Status RunOnRow(absl::string_view sql, const Values&... values) {
    HOPSCOPE_RETURN_IF_ERROR(Run(sql, values...));
    if (Changes() == 0) return NoSuchRow(sql);
    return absl::OkStatus();
  }

  // The first row as `read` makes it, where there is one.
  template <typename Read, typename... Values>
  auto QueryOne(absl::string_view sql, const Read& read, const Values&... values)
      -> absl::StatusOr<std::optional<std::invoke_result_t<Read, const SqliteStatement&>>> {
    HOPSCOPE_ASSIGN_OR_RETURN(SqliteStatement statement, Prepare(sql));
    statement.Bind(values...);
    HOPSCOPE_ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return std::nullopt;
    return std::make_optional(read(statement));
  }

  // All rows as `read` makes them.
  template <typename Read, typename... Values>
  auto QueryAll(absl::string_view sql, const Read& read, const Values&... values)
      -> absl::StatusOr<std::vector<std::invoke_result_t<Read, const SqliteStatement&>>> {
    HOPSCOPE_ASSIGN_OR_RETURN(SqliteStatement statement, Prepare(sql));
    statement.Bind(values...);
    std::vector<std::invoke_result_t<Read, const SqliteStatement&>> rows;
    for (;;) {
      HOPSCOPE_ASSIGN_OR_RETURN(const bool row, statement.Step());
      if (!row) return rows;
      rows.push_back(read(statement));
    }
  }

  bool InTransaction() const { return sqlite3_get_autocommit(database_) == 0; }
  // Rows that the last statement changed.
  int64_t Changes() const { return sqlite3_changes64(database_); }
  int64_t LastInsertKey() const { return sqlite3_last_insert_rowid(database_); }

  // The first error of the store itself since the last call, whether or not somebody looked at it;
  // OK: none.
  absl::Status TakeStoreError();

 private:
  friend class SqliteStatement;
  explicit SqliteConnection(sqlite3* database) : database_(database) {}

  // The status for a result code of this connection.
  absl::Status Fail(int code, absl::string_view what);
  absl::Status NoSuchRow(absl::string_view sql);

  sqlite3* const database_;
  absl::flat_hash_map<std::string, sqlite3_stmt*> statements_;
  absl::Status store_error_;
};

}  // namespace hopscope::store

#endif  // HOPSCOPE_SERVER_STORE_SQLITE_CONNECTION_H_

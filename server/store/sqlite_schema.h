// The tables of the SQLite store, and how a file of an older version becomes one of this version.
#ifndef HOPSCOPE_SERVER_STORE_SQLITE_SCHEMA_H_
#define HOPSCOPE_SERVER_STORE_SQLITE_SCHEMA_H_

#include "absl/status/status.h"
#include "server/store/sqlite_connection.h"

namespace hopscope::store {

// The version that this program writes: the number of migrations.
int SqliteSchemaVersion();

// Brings the file to this version, one transaction a step. FAILED_PRECONDITION (STORE_SCHEMA_NEWER)
// with both versions where a newer program wrote it; nothing is changed then.
absl::Status MigrateSqliteSchema(SqliteConnection& connection);

}  // namespace hopscope::store

#endif  // HOPSCOPE_SERVER_STORE_SQLITE_SCHEMA_H_

// The store in one SQLite file, for one server process.
//
// Writes are made by one thread, which commits those that wait together: each body runs in a
// savepoint of its own, and all callers are answered after the one commit. Reads run beside them on
// connections of their own. A lock file keeps a second process out.
#ifndef HOPSCOPE_SERVER_STORE_SQLITE_STORE_H_
#define HOPSCOPE_SERVER_STORE_SQLITE_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "server/store/file_lock.h"
#include "server/store/sqlite_connection.h"
#include "server/store/store.h"

namespace hopscope::store {

class SqliteStore final : public Store {
 public:
  struct Options {
    // The database file. It is created where it is missing, its folder too. Beside it lie PATH-wal,
    // PATH-shm and PATH.lock.
    std::string path;
    // Most writes that share one commit.
    int max_group = 256;
    // Most reads at a time; further ones wait.
    int max_readers = 4;
    // May be null; must outlive the store.
    StoreObserver* observer = nullptr;
    // Name of the SQLite VFS; empty: the default one. Tests put faults in here.
    std::string vfs;
  };

  // FAILED_PRECONDITION: another process has the file open (STORE_IN_USE), or a newer program wrote
  // it (STORE_SCHEMA_NEWER). UNAVAILABLE or DATA_LOSS as in store.h.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(const Options& options);
  // No call may be in progress.
  ~SqliteStore() override;

  absl::Status Write(absl::string_view operation, WriteBody body) override;
  absl::Status Read(absl::string_view operation, ReadBody body) override;
  absl::Status Probe() override;

  // Writes that wait for the commit after the one in progress.
  int64_t waiting_writes() const;

 private:
  // A call to Write that waits for the writer thread.
  struct PendingWrite {
    WriteBody body;
    absl::Status status;
    bool done = false;
    common::CondVar answered;
  };

  SqliteStore(Options options, FileLock lock, std::unique_ptr<SqliteConnection> writer);

  // Hands a body to the writer thread and waits.
  absl::Status Enqueue(WriteBody body);
  void WriterLoop();
  void CommitGroup(const std::vector<PendingWrite*>& group);

  absl::StatusOr<std::unique_ptr<SqliteConnection>> TakeReader();
  void ReturnReader(std::unique_ptr<SqliteConnection> reader);

  const Options options_;
  const FileLock lock_;
  const std::unique_ptr<SqliteConnection> writer_;  // used by the writer thread alone

  mutable common::Mutex mutex_;
  common::CondVar work_;  // pending_ or closing_ changed
  std::vector<PendingWrite*> pending_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;

  common::Mutex readers_mutex_;
  common::CondVar reader_returned_;
  std::vector<std::unique_ptr<SqliteConnection>> idle_readers_ ABSL_GUARDED_BY(readers_mutex_);
  int readers_in_use_ ABSL_GUARDED_BY(readers_mutex_) = 0;

  std::thread writer_thread_;
};

}  // namespace hopscope::store

#endif  // HOPSCOPE_SERVER_STORE_SQLITE_STORE_H_

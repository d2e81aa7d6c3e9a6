#include "server/store/sqlite_store.h"

#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "server/store/sqlite_schema.h"
#include "server/store/sqlite_transaction.h"

namespace hopscope::store {
namespace {

// Tells the observer how long an operation took, once it ends.
class Timing {
 public:
  Timing(StoreObserver* observer, absl::string_view operation)
      : observer_(observer), operation_(operation), start_(std::chrono::steady_clock::now()) {}

  absl::Status End(absl::Status status) const {
    if (observer_ != nullptr) {
      observer_->OnOperation(
          operation_, absl::FromChrono(std::chrono::steady_clock::now() - start_), status.code());
    }
    return status;
  }

 private:
  StoreObserver* const observer_;
  const absl::string_view operation_;
  const std::chrono::steady_clock::time_point start_;
};

// Ends a transaction that failed. SQLite may have ended it by itself.
void RollBack(SqliteConnection& connection) {
  if (connection.InTransaction()) connection.Run("ROLLBACK").IgnoreError();
  connection.TakeStoreError().IgnoreError();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(const Options& options) {
  const std::filesystem::path folder = std::filesystem::path(options.path).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) {
    return common::MakeError(
        absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE",
        absl::StrCat("cannot create the folder ", folder.string(), ": ", error.message()));
  }
  HOPSCOPE_ASSIGN_OR_RETURN(FileLock lock, FileLock::Acquire(options.path + ".lock"));
  HOPSCOPE_ASSIGN_OR_RETURN(
      std::unique_ptr<SqliteConnection> writer,
      SqliteConnection::Open({.path = options.path, .vfs = options.vfs, .cache_kib = 64 * 1024}));
  HOPSCOPE_RETURN_IF_ERROR(MigrateSqliteSchema(*writer));
  return std::unique_ptr<SqliteStore>(new SqliteStore(options, std::move(lock), std::move(writer)));
}

SqliteStore::SqliteStore(Options options, FileLock lock, std::unique_ptr<SqliteConnection> writer)
    : options_(std::move(options)),
      lock_(std::move(lock)),
      writer_(std::move(writer)),
      writer_thread_([this] { WriterLoop(); }) {}

SqliteStore::~SqliteStore() {
  {
    common::MutexLock lock(&mutex_);
    closing_ = true;
    work_.Signal();
  }
  writer_thread_.join();
}

absl::Status SqliteStore::Write(absl::string_view operation, WriteBody body) {
  const Timing timing(options_.observer, operation);
  return timing.End(Enqueue(body));
}

absl::Status SqliteStore::Probe() {
  const Timing timing(options_.observer, "probe");
  return timing.End(Enqueue([this](Transaction&) {
    // On the writer thread, to which this connection belongs.
    return writer_->Run("UPDATE probe SET count = count + 1");
  }));
}

absl::Status SqliteStore::Enqueue(WriteBody body) {
  PendingWrite write{.body = body};
  common::MutexLock lock(&mutex_);
  pending_.push_back(&write);
  work_.Signal();
  while (!write.done) write.answered.Wait(&mutex_);
  return std::move(write.status);
}

int64_t SqliteStore::waiting_writes() const {
  common::MutexLock lock(&mutex_);
  return static_cast<int64_t>(pending_.size());
}

void SqliteStore::WriterLoop() {
  std::vector<PendingWrite*> group;
  for (;;) {
    {
      common::MutexLock lock(&mutex_);
      for (PendingWrite* write : group) {
        write->done = true;
        write->answered.Signal();
      }
      while (pending_.empty() && !closing_) work_.Wait(&mutex_);
      if (pending_.empty()) return;
      const size_t size = std::min(pending_.size(), static_cast<size_t>(options_.max_group));
      group.assign(pending_.begin(), pending_.begin() + size);
      pending_.erase(pending_.begin(), pending_.begin() + size);
    }
    CommitGroup(group);
  }
}

void SqliteStore::CommitGroup(const std::vector<PendingWrite*>& group) {
  // `failure` is the store's own, as opposed to what a body returns: it takes the whole group with
  // it.
  absl::Status failure = writer_->Run("BEGIN IMMEDIATE");
  for (PendingWrite* write : group) {
    if (!failure.ok()) break;
    failure = writer_->Run("SAVEPOINT body");
    if (!failure.ok()) break;
    SqliteTransaction transaction(writer_.get());
    write->status = write->body(transaction);
    // An error that the body may have swallowed still fails it; one of the disk fails all.
    const absl::Status error = writer_->TakeStoreError();
    if (!error.ok()) write->status = error;
    if (absl::IsUnavailable(error) || !writer_->InTransaction()) {
      failure = error;
      break;
    }
    if (!write->status.ok()) failure = writer_->Run("ROLLBACK TO body");
    if (failure.ok()) failure = writer_->Run("RELEASE body");
  }
  if (failure.ok()) failure = writer_->Run("COMMIT");
  if (failure.ok()) return;
  RollBack(*writer_);
  for (PendingWrite* write : group) write->status = failure;
}

absl::Status SqliteStore::Read(absl::string_view operation, ReadBody body) {
  const Timing timing(options_.observer, operation);
  absl::StatusOr<std::unique_ptr<SqliteConnection>> reader = TakeReader();
  if (!reader.ok()) return timing.End(std::move(reader).status());
  absl::Status status = (*reader)->Run("BEGIN");
  if (status.ok()) {
    SqliteTransaction transaction(reader->get());
    status = body(transaction);
    const absl::Status failure = (*reader)->TakeStoreError();
    if (!failure.ok()) status = failure;
  }
  RollBack(**reader);
  ReturnReader(*std::move(reader));
  return timing.End(std::move(status));
}

absl::StatusOr<std::unique_ptr<SqliteConnection>> SqliteStore::TakeReader() {
  {
    common::MutexLock lock(&readers_mutex_);
    while (idle_readers_.empty() && readers_in_use_ >= options_.max_readers) {
      reader_returned_.Wait(&readers_mutex_);
    }
    ++readers_in_use_;
    if (!idle_readers_.empty()) {
      std::unique_ptr<SqliteConnection> reader = std::move(idle_readers_.back());
      idle_readers_.pop_back();
      return reader;
    }
  }
  absl::StatusOr<std::unique_ptr<SqliteConnection>> reader =
      SqliteConnection::Open({.path = options_.path, .vfs = options_.vfs, .query_only = true});
  if (!reader.ok()) ReturnReader(nullptr);
  return reader;
}

void SqliteStore::ReturnReader(std::unique_ptr<SqliteConnection> reader) {
  common::MutexLock lock(&readers_mutex_);
  --readers_in_use_;
  if (reader != nullptr) idle_readers_.push_back(std::move(reader));
  reader_returned_.Signal();
}

}  // namespace hopscope::store

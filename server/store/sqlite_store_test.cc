#include "server/store/sqlite_store.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/sqlite_schema.h"
#include "server/store/testing/faulty_vfs.h"
#include "server/store/testing/store_suite.h"

namespace hopscope::store {
namespace {

using testing::FaultyVfs;
using ::testing::HasSubstr;
using testing::MakeJobPlanRow;
using testing::MakeJobRow;
using testing::StoreFixture;
using testing::StoreSuite;

// A folder that is gone at the end.
class TempFolder {
 public:
  TempFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "hopscope-store-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) std::abort();
    path_ = path;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string Path(const std::string& name) const { return absl::StrCat(path_, "/", name); }

 private:
  std::string path_;
};

class SqliteFixture : public StoreFixture {
 public:
  SqliteFixture() { Reopen(); }
  Store& store() override { return *store_; }
  void Reopen() override {
    store_.reset();
    auto store = SqliteStore::Open({.path = folder_.Path("new/folder/store.db")});
    if (!store.ok()) {
      ADD_FAILURE() << store.status();
      std::abort();
    }
    store_ = *std::move(store);
  }

 private:
  TempFolder folder_;
  std::unique_ptr<SqliteStore> store_;
};

std::unique_ptr<StoreFixture> MakeFixture() { return std::make_unique<SqliteFixture>(); }

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreSuite, ::testing::Values(&MakeFixture),
                         [](const auto&) { return std::string("File"); });

absl::Status InsertJob(Store& store, const std::string& id) {
  return store.Write("insert_job", [&](Transaction& t) {
    return t.InsertJob(MakeJobRow(id), MakeJobPlanRow()).status();
  });
}

bool HasJob(Store& store, const std::string& id) {
  bool found = false;
  const absl::Status status = store.Read("find_job", [&](ReadTransaction& t) -> absl::Status {
    HOPSCOPE_ASSIGN_OR_RETURN(const auto job, t.FindJob(id));
    found = job.has_value();
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return found;
}

class SqliteStoreTest : public ::testing::Test {
 protected:
  ~SqliteStoreTest() override { FaultyVfs::Get().Heal(); }

  std::unique_ptr<SqliteStore> Open(const std::string& name = "store.db", std::string vfs = "") {
    auto store = SqliteStore::Open(
        {.path = folder_.Path(name), .observer = observer_, .vfs = std::move(vfs)});
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

  TempFolder folder_;
  StoreObserver* observer_ = nullptr;
};

TEST_F(SqliteStoreTest, TheFileIsOpenOnceOnly) {
  auto store = Open();
  const auto second = SqliteStore::Open({.path = folder_.Path("store.db")});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(common::ErrorReason(second.status()), "STORE_IN_USE");
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(absl::StrCat(getpid())));
  store.reset();
  EXPECT_TRUE(SqliteStore::Open({.path = folder_.Path("store.db")}).ok());
}

TEST_F(SqliteStoreTest, ANewerSchemaIsRefusedWithBothVersions) {
  Open().reset();
  {
    auto connection = SqliteConnection::Open({.path = folder_.Path("store.db")});
    ASSERT_TRUE(connection.ok());
    ASSERT_TRUE((*connection)->ExecuteScript("UPDATE schema_version SET version = 12345").ok());
  }
  const auto refused = SqliteStore::Open({.path = folder_.Path("store.db")});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(common::ErrorReason(refused.status()), "STORE_SCHEMA_NEWER");
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("12345"));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr(absl::StrCat("version ", SqliteSchemaVersion())));
}

TEST_F(SqliteStoreTest, AFileThatIsNoDatabaseIsSaidToBeDamaged) {
  std::ofstream(folder_.Path("store.db")) << std::string(8192, 'x');
  const auto refused = SqliteStore::Open({.path = folder_.Path("store.db")});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(common::ErrorReason(refused.status()), "STORE_CORRUPT");
}

TEST_F(SqliteStoreTest, AFolderThatCannotBeMadeIsSaidSo) {
  std::ofstream(folder_.Path("file")) << "x";
  const auto refused = SqliteStore::Open({.path = folder_.Path("file/store.db")});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
}

// What is on disk after an acknowledged write is all there, though nothing was closed.
TEST_F(SqliteStoreTest, AcknowledgedWritesSurviveACrash) {
  auto store = Open();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(InsertJob(*store, absl::StrCat("job", i)).ok());
  for (const char* suffix : {"", "-wal"}) {
    std::filesystem::copy_file(absl::StrCat(folder_.Path("store.db"), suffix),
                               absl::StrCat(folder_.Path("copy.db"), suffix));
  }
  auto copy = Open("copy.db");
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(HasJob(*copy, absl::StrCat("job", i))) << i;
}

TEST_F(SqliteStoreTest, WaitingWritesShareACommit) {
  auto store = Open("store.db", FaultyVfs::Get().name());
  const int64_t before = FaultyVfs::Get().syncs();
  ASSERT_TRUE(InsertJob(*store, "alone").ok());
  EXPECT_GT(FaultyVfs::Get().syncs(), before) << "a write is synced before it is acknowledged";

  // One body holds the writer until all the others wait behind it.
  constexpr int kWrites = 50;
  std::atomic<bool> holding = false;
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    EXPECT_TRUE(store
                    ->Write("hold",
                            [&](Transaction&) {
                              holding = true;
                              while (store->waiting_writes() < kWrites) std::this_thread::yield();
                              return absl::OkStatus();
                            })
                    .ok());
  });
  while (!holding) std::this_thread::yield();
  const int64_t syncs = FaultyVfs::Get().syncs();
  for (int i = 0; i < kWrites; ++i) {
    threads.emplace_back([&, i] { EXPECT_TRUE(InsertJob(*store, absl::StrCat("job", i)).ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(FaultyVfs::Get().syncs() - syncs, kWrites / 2);
  for (int i = 0; i < kWrites; ++i) EXPECT_TRUE(HasJob(*store, absl::StrCat("job", i)));
}

// Fails each single write or sync of a transaction in turn, as a full disk or a broken one would.
class SqliteFaultTest : public SqliteStoreTest, public ::testing::WithParamInterface<int> {};

TEST_P(SqliteFaultTest, NothingIsHalfWrittenAndTheStoreRecovers) {
  FaultyVfs& vfs = FaultyVfs::Get();
  auto store = Open("store.db", vfs.name());
  ASSERT_TRUE(InsertJob(*store, "first").ok());
  int failed = 0;
  int jobs = 0;
  for (int after = 0;; ++after) {
    ASSERT_LT(after, 1000);
    ++jobs;
    const std::string id = absl::StrCat("job", after);
    vfs.FailAfter(after, GetParam());
    const absl::Status status = InsertJob(*store, id);
    const bool hit = vfs.failures() > 0;
    // Readers go on meanwhile, and see nothing of it.
    EXPECT_TRUE(HasJob(*store, "first"));
    EXPECT_EQ(HasJob(*store, id), status.ok());
    if (!status.ok()) {
      ++failed;
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
      EXPECT_EQ(common::ErrorReason(status), "STORE_UNAVAILABLE");
      EXPECT_EQ(store->Probe().code(), absl::StatusCode::kUnavailable);
    }
    vfs.Heal();
    EXPECT_TRUE(store->Probe().ok());
    if (!status.ok()) {
      EXPECT_TRUE(InsertJob(*store, id).ok());
    }
    if (!hit) break;
  }
  EXPECT_GT(failed, 2);
  // The same after a restart.
  store.reset();
  store = Open("store.db", vfs.name());
  for (int i = 0; i < jobs; ++i) EXPECT_TRUE(HasJob(*store, absl::StrCat("job", i)));
  store.reset();
  auto connection = SqliteConnection::Open({.path = folder_.Path("store.db")});
  ASSERT_TRUE(connection.ok());
  const auto check = (*connection)->QueryOne("PRAGMA integrity_check", [](const auto& row) {
    return row.Text(0);
  });
  ASSERT_TRUE(check.ok());
  EXPECT_EQ(**check, "ok");
}

INSTANTIATE_TEST_SUITE_P(Codes, SqliteFaultTest,
                         ::testing::Values(SQLITE_FULL, SQLITE_IOERR_WRITE, SQLITE_IOERR_FSYNC));

// A disk that fills up under many writers: each is told the truth about its own write.
TEST_F(SqliteStoreTest, UnderFaultsEveryCallerIsToldWhatBecameOfItsWrite) {
  FaultyVfs& vfs = FaultyVfs::Get();
  auto store = Open("store.db", vfs.name());
  std::atomic<bool> stop = false;
  std::thread disk([&] {
    for (int i = 0; !stop; ++i) {
      vfs.FailAfter(i % 7, SQLITE_FULL);
      std::this_thread::yield();
      vfs.Heal();
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> writers;
  std::vector<std::vector<std::pair<std::string, bool>>> told(8);
  for (int w = 0; w < 8; ++w) {
    writers.emplace_back([&, w] {
      for (int i = 0; i < 40; ++i) {
        const std::string id = absl::StrCat("job", w, "-", i);
        const absl::Status status = InsertJob(*store, id);
        if (!status.ok()) {
          EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
        }
        told[w].emplace_back(id, status.ok());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  stop = true;
  disk.join();
  vfs.Heal();
  store.reset();
  store = Open("store.db", vfs.name());
  for (const auto& of_writer : told) {
    for (const auto& [id, ok] : of_writer) EXPECT_EQ(HasJob(*store, id), ok) << id;
  }
}

TEST_F(SqliteStoreTest, AProgrammingErrorFailsItsOwnWriteAlone) {
  auto store = Open();
  ASSERT_TRUE(InsertJob(*store, "job").ok());
  const absl::Status status = InsertJob(*store, "job");  // the id is there already
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(common::ErrorReason(status), "STORE_ERROR");
  EXPECT_TRUE(InsertJob(*store, "other").ok());
}

class Recorder : public StoreObserver {
 public:
  void OnOperation(absl::string_view operation, absl::Duration duration,
                   absl::StatusCode code) override {
    common::MutexLock lock(&mutex_);
    EXPECT_GE(duration, absl::ZeroDuration());
    ++counts_[absl::StrCat(operation, ":", absl::StatusCodeToString(code))];
  }
  std::map<std::string, int> counts() {
    common::MutexLock lock(&mutex_);
    return counts_;
  }

 private:
  common::Mutex mutex_;
  std::map<std::string, int> counts_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(SqliteStoreTest, OperationsAreTimedByName) {
  Recorder recorder;
  observer_ = &recorder;
  auto store = Open();
  ASSERT_TRUE(InsertJob(*store, "job").ok());
  EXPECT_FALSE(InsertJob(*store, "job").ok());
  EXPECT_TRUE(HasJob(*store, "job"));
  ASSERT_TRUE(store->Probe().ok());
  EXPECT_THAT(
      recorder.counts(),
      ::testing::ElementsAre(std::pair("find_job:OK", 1), std::pair("insert_job:INTERNAL", 1),
                             std::pair("insert_job:OK", 1), std::pair("probe:OK", 1)));
}

}  // namespace
}  // namespace hopscope::store

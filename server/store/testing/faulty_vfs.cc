#include "server/store/testing/faulty_vfs.h"

#include <sqlite3.h>

#include <atomic>
#include <cstdlib>
#include <limits>

namespace hopscope::store::testing {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 2;

std::atomic<int64_t> writes_left{kNever};
std::atomic<int> fault_code{SQLITE_OK};
std::atomic<int64_t> failure_count{0};
std::atomic<int64_t> sync_count{0};

// The code of the fault where the next write is to fail, else SQLITE_OK.
int TakeFault() {
  if (writes_left.fetch_sub(1) > 0) return SQLITE_OK;
  failure_count.fetch_add(1);
  return fault_code.load();
}

// A file of this VFS; the file of the default VFS lies behind it in memory.
struct File {
  sqlite3_file base;
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  const sqlite3_io_methods* methods() { return real()->pMethods; }
};

File* ToFile(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
sqlite3_vfs* Real(sqlite3_vfs* vfs) { return static_cast<sqlite3_vfs*>(vfs->pAppData); }

int Close(sqlite3_file* f) { return ToFile(f)->methods()->xClose(ToFile(f)->real()); }
int Read(sqlite3_file* f, void* data, int size, sqlite3_int64 offset) {
  return ToFile(f)->methods()->xRead(ToFile(f)->real(), data, size, offset);
}
int Write(sqlite3_file* f, const void* data, int size, sqlite3_int64 offset) {
  const int fault = TakeFault();
  if (fault != SQLITE_OK) return fault;
  return ToFile(f)->methods()->xWrite(ToFile(f)->real(), data, size, offset);
}
int Truncate(sqlite3_file* f, sqlite3_int64 size) {
  const int fault = TakeFault();
  if (fault != SQLITE_OK) return fault;
  return ToFile(f)->methods()->xTruncate(ToFile(f)->real(), size);
}
int Sync(sqlite3_file* f, int flags) {
  sync_count.fetch_add(1);
  const int fault = TakeFault();
  if (fault != SQLITE_OK) return fault;
  return ToFile(f)->methods()->xSync(ToFile(f)->real(), flags);
}
int FileSize(sqlite3_file* f, sqlite3_int64* size) {
  return ToFile(f)->methods()->xFileSize(ToFile(f)->real(), size);
}
int Lock(sqlite3_file* f, int level) {
  return ToFile(f)->methods()->xLock(ToFile(f)->real(), level);
}
int Unlock(sqlite3_file* f, int level) {
  return ToFile(f)->methods()->xUnlock(ToFile(f)->real(), level);
}
int CheckReservedLock(sqlite3_file* f, int* result) {
  return ToFile(f)->methods()->xCheckReservedLock(ToFile(f)->real(), result);
}
int FileControl(sqlite3_file* f, int op, void* arg) {
  return ToFile(f)->methods()->xFileControl(ToFile(f)->real(), op, arg);
}
int SectorSize(sqlite3_file* f) { return ToFile(f)->methods()->xSectorSize(ToFile(f)->real()); }
int DeviceCharacteristics(sqlite3_file* f) {
  return ToFile(f)->methods()->xDeviceCharacteristics(ToFile(f)->real());
}
int ShmMap(sqlite3_file* f, int page, int size, int extend, void volatile** memory) {
  return ToFile(f)->methods()->xShmMap(ToFile(f)->real(), page, size, extend, memory);
}
int ShmLock(sqlite3_file* f, int offset, int n, int flags) {
  return ToFile(f)->methods()->xShmLock(ToFile(f)->real(), offset, n, flags);
}
void ShmBarrier(sqlite3_file* f) { ToFile(f)->methods()->xShmBarrier(ToFile(f)->real()); }
int ShmUnmap(sqlite3_file* f, int remove) {
  return ToFile(f)->methods()->xShmUnmap(ToFile(f)->real(), remove);
}

// Version 2: without memory-mapped files, so that every write comes through here.
constexpr sqlite3_io_methods kMethods = {2,
                                         Close,
                                         Read,
                                         Write,
                                         Truncate,
                                         Sync,
                                         FileSize,
                                         Lock,
                                         Unlock,
                                         CheckReservedLock,
                                         FileControl,
                                         SectorSize,
                                         DeviceCharacteristics,
                                         ShmMap,
                                         ShmLock,
                                         ShmBarrier,
                                         ShmUnmap,
                                         nullptr,
                                         nullptr};

int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* f, int flags, int* out_flags) {
  File* file = ToFile(f);
  file->base.pMethods = nullptr;
  const int code = Real(vfs)->xOpen(Real(vfs), name, file->real(), flags, out_flags);
  if (file->methods() != nullptr) file->base.pMethods = &kMethods;
  return code;
}

constexpr char kName[] = "hopscope_faulty";

}  // namespace

FaultyVfs& FaultyVfs::Get() {
  static auto* const vfs = new FaultyVfs;
  return *vfs;
}

FaultyVfs::FaultyVfs() {
  sqlite3_vfs* const real = sqlite3_vfs_find(nullptr);
  auto* vfs = new sqlite3_vfs(*real);  // everything but opening files is the default's
  vfs->zName = kName;
  vfs->pNext = nullptr;
  vfs->pAppData = real;
  vfs->szOsFile = static_cast<int>(sizeof(File)) + real->szOsFile;
  vfs->xOpen = Open;
  // The default's functions look at their own pAppData.
  vfs->xDelete = [](sqlite3_vfs* v, const char* name, int sync) {
    return Real(v)->xDelete(Real(v), name, sync);
  };
  vfs->xAccess = [](sqlite3_vfs* v, const char* name, int flags, int* result) {
    return Real(v)->xAccess(Real(v), name, flags, result);
  };
  vfs->xFullPathname = [](sqlite3_vfs* v, const char* name, int size, char* out) {
    return Real(v)->xFullPathname(Real(v), name, size, out);
  };
  if (sqlite3_vfs_register(vfs, /*makeDflt=*/0) != SQLITE_OK) std::abort();
}

const std::string& FaultyVfs::name() const {
  static const auto* const name = new std::string(kName);
  return *name;
}

void FaultyVfs::FailAfter(int64_t writes, int code) {
  failure_count = 0;
  fault_code = code;
  writes_left = writes;
}

void FaultyVfs::Heal() {
  fault_code = SQLITE_OK;
  writes_left = kNever;
}

int64_t FaultyVfs::failures() const { return failure_count; }

int64_t FaultyVfs::syncs() const { return sync_count; }

}  // namespace hopscope::store::testing

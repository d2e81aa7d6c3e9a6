// For tests: a SQLite VFS over the default one, whose writes and syncs fail on demand.
#ifndef HOPSCOPE_SERVER_STORE_TESTING_FAULTY_VFS_H_
#define HOPSCOPE_SERVER_STORE_TESTING_FAULTY_VFS_H_

#include <cstdint>
#include <string>

namespace hopscope::store::testing {

// One for the whole process; thread-safe.
class FaultyVfs {
 public:
  // Registers the VFS on first use.
  static FaultyVfs& Get();

  // For SqliteStore::Options.vfs.
  const std::string& name() const;

  // After `writes` more calls that write, extend or sync a file, all of them fail with SQLite
  // result `code`, such as SQLITE_FULL, until Heal.
  void FailAfter(int64_t writes, int code);
  void Heal();

  // Calls that failed since FailAfter.
  int64_t failures() const;
  // Syncs so far.
  int64_t syncs() const;

 private:
  FaultyVfs();
};

}  // namespace hopscope::store::testing

#endif  // HOPSCOPE_SERVER_STORE_TESTING_FAULTY_VFS_H_

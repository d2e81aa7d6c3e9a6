// An exclusive lock on a file, held as long as the object lives and gone with the process.
#ifndef HOPSCOPE_SERVER_STORE_FILE_LOCK_H_
#define HOPSCOPE_SERVER_STORE_FILE_LOCK_H_

#include <string>

#include "absl/status/statusor.h"

namespace hopscope::store {

// Move-only.
class FileLock {
 public:
  // Creates the file where it is missing and writes the process id into it. FAILED_PRECONDITION
  // (STORE_IN_USE) with the holder's process id where another object, here or in another process,
  // holds the lock.
  static absl::StatusOr<FileLock> Acquire(const std::string& path);

  FileLock(FileLock&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

}  // namespace hopscope::store

#endif  // HOPSCOPE_SERVER_STORE_FILE_LOCK_H_

#include "server/store/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace hopscope::store {

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    return common::MakeError(absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE",
                             absl::StrCat("cannot open ", path, ": ", std::strerror(errno)));
  }
  FileLock lock(descriptor);
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return common::MakeError(absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE",
                               absl::StrCat("cannot lock ", path, ": ", std::strerror(errno)));
    }
    char holder[32] = {};
    const ssize_t size = pread(descriptor, holder, sizeof(holder) - 1, 0);
    const std::string pid(
        absl::StripAsciiWhitespace(absl::string_view(holder, size > 0 ? size : 0)));
    return common::MakeError(
        absl::StatusCode::kFailedPrecondition, "STORE_IN_USE",
        absl::StrCat("another server uses this state (", path, " is locked by process ",
                     pid.empty() ? "unknown" : pid, "): stop it, or use another state_dir"));
  }
  // For people alone: the lock is flock's, so that failing to write this does no harm.
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(descriptor, 0) == 0) {
    [[maybe_unused]] const ssize_t written = pwrite(descriptor, pid.data(), pid.size(), 0);
  }
  return lock;
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace hopscope::store

#include "client/cli/temporary_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace hopscope::cli {
namespace {

// Locks a folder of this user that a path leads to without links. Returns a descriptor that holds
// the lock; -1: there is no such folder (any more), or another process holds it.
int LockFolder(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return -1;
  struct stat held {};
  struct stat there {};
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0 && fstat(descriptor, &held) == 0 &&
      held.st_uid == geteuid() &&
      // Somebody may have removed it before the lock was taken.
      lstat(path.c_str(), &there) == 0 && there.st_ino == held.st_ino &&
      there.st_dev == held.st_dev) {
    return descriptor;
  }
  close(descriptor);
  return -1;
}

void RemoveLeftOver(const std::filesystem::path& parent, const std::string& prefix) {
  std::error_code error;
  std::filesystem::directory_iterator entry(parent, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (!absl::StartsWith(entry->path().filename().string(), prefix)) continue;
    const int descriptor = LockFolder(entry->path().string());
    if (descriptor < 0) continue;
    std::error_code not_removed;  // the next one tries again
    std::filesystem::remove_all(entry->path(), not_removed);
    close(descriptor);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<TemporaryFolder>> TemporaryFolder::Make(absl::string_view prefix) {
  std::error_code error;
  std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  if (error) parent = "/tmp";
  const std::string begin = absl::StrCat(prefix, "-");
  RemoveLeftOver(parent, begin);
  // Another process may take a folder that is not locked yet for one that is left over.
  constexpr int kTries = 10;
  std::string path;
  for (int i = 0; i < kTries; ++i) {
    path = (parent / absl::StrCat(begin, "XXXXXX")).string();
    if (mkdtemp(path.data()) == nullptr) break;
    const int descriptor = LockFolder(path);
    if (descriptor >= 0) {
      return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(std::move(path), descriptor));
    }
  }
  return common::MakeError(absl::StatusCode::kFailedPrecondition, "NO_TEMPORARY_FOLDER",
                           absl::StrCat(path, ": ", std::strerror(errno)));
}

TemporaryFolder::TemporaryFolder(std::string path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
  close(descriptor_);
}

std::string TemporaryFolder::File(absl::string_view name) const {
  return absl::StrCat(path_, "/", name);
}

}  // namespace hopscope::cli

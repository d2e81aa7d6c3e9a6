#include "common/checkpoint/digest.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/errors.h"
#include "common/checkpoint/folder.h"
#include "common/sha256.h"
#include "common/status.h"

namespace hopscope::checkpoint {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

// An open file of the checkpoint.
class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OpenFile& operator=(OpenFile&&) = delete;
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

absl::Status Unreadable(absl::string_view name, int error) {
  const std::string message = absl::StrCat(Quoted(name), ": ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) return MissingFile("CHECKPOINT_MISSING_FILE", message);
  return BrokenCheckpoint("CHECKPOINT_UNREADABLE", message);
}

// What a file is known by.
std::string Identity(absl::string_view name, const struct stat& file) {
  return absl::StrCat(name.size(), ":", name, " ", file.st_dev, " ", file.st_ino, " ", file.st_size,
                      " ", file.st_mtim.tv_sec, ".", file.st_mtim.tv_nsec, " ", file.st_ctim.tv_sec,
                      ".", file.st_ctim.tv_nsec, "\n");
}

// Feeds a file whose size is `size`; another number of bytes means that somebody writes to it.
absl::Status HashContent(const OpenFile& file, absl::string_view name, int64_t size,
                         std::string* buffer, common::Sha256* hash) {
  int64_t done = 0;
  while (done <= size) {
    const ssize_t got = read(file.fd(), buffer->data(), buffer->size());
    if (got < 0) {
      if (errno == EINTR) continue;
      return Unreadable(name, errno);
    }
    if (got == 0) break;
    hash->Update(buffer->data(), static_cast<size_t>(got));
    done += got;
  }
  if (done != size) {
    return BrokenCheckpoint("CHECKPOINT_CHANGED",
                            absl::StrCat(Quoted(name), " changed its size while it was read"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> DigestCache::Digest(const std::string& path) {
  HOPSCOPE_ASSIGN_OR_RETURN(const CheckpointFolder folder, ReadCheckpointFolder(path));
  const std::vector<std::string> names = folder.digest_files();

  std::shared_ptr<Entry> entry;
  {
    common::MutexLock lock(&mutex_);
    std::shared_ptr<Entry>& slot = entries_[path];
    if (slot == nullptr) slot = std::make_shared<Entry>();
    entry = slot;
  }
  common::MutexLock lock(&entry->mutex);

  std::vector<std::string> paths;
  std::string identity;
  for (const std::string& name : names) {
    paths.push_back(absl::StrCat(path, "/", name));
    struct stat file = {};
    if (stat(paths.back().c_str(), &file) != 0) return Unreadable(name, errno);
    identity += Identity(name, file);
  }
  if (identity == entry->identity) return entry->digest;

  common::Sha256 hash;
  std::string buffer(kBufferBytes, '\0');
  std::string hashed_identity;
  absl::Time newest = absl::InfinitePast();
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    // O_NONBLOCK: opening a FIFO must not wait for a writer.
    const OpenFile file(open(paths[i].c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.fd() < 0) return Unreadable(name, errno);
    struct stat before = {};
    if (fstat(file.fd(), &before) != 0) return Unreadable(name, errno);
    if (!S_ISREG(before.st_mode)) {
      return BrokenCheckpoint("CHECKPOINT_UNREADABLE",
                              absl::StrCat(Quoted(name), ": not a regular file"));
    }
    hash.UpdateLength(name.size());
    hash.Update(name.data(), name.size());
    hash.UpdateLength(static_cast<uint64_t>(before.st_size));
    HOPSCOPE_RETURN_IF_ERROR(HashContent(file, name, before.st_size, &buffer, &hash));
    bytes_hashed_ += before.st_size;
    struct stat after = {};
    if (fstat(file.fd(), &after) != 0) return Unreadable(name, errno);
    if (Identity(name, before) != Identity(name, after)) {
      return BrokenCheckpoint("CHECKPOINT_CHANGED",
                              absl::StrCat(Quoted(name), " was written to while it was read"));
    }
    hashed_identity += Identity(name, after);
    newest = std::max(
        {newest, absl::TimeFromTimespec(after.st_mtim), absl::TimeFromTimespec(after.st_ctim)});
  }
  HOPSCOPE_ASSIGN_OR_RETURN(std::string digest, hash.Finish());
  entry->identity.clear();
  if (clock_->Now() - newest >= kSettleTime) {
    entry->identity = std::move(hashed_identity);
    entry->digest = digest;
  }
  return digest;
}

}  // namespace hopscope::checkpoint

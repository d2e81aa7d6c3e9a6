#include "common/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace hopscope::common {

namespace {

absl::Status CannotWrite(absl::string_view path, int error) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "OUTPUT_FAILED",
                   absl::StrCat("cannot write ", path, ": ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<OutputFile> OutputFile::Create(const std::string& path) {
  std::string target = path;
  if (struct stat found{}; stat(path.c_str(), &found) == 0) {
    if (S_ISDIR(found.st_mode)) return CannotWrite(path, EISDIR);
    if (!S_ISREG(found.st_mode)) {
      const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
      if (descriptor < 0) return CannotWrite(path, errno);
      return OutputFile(path, "", descriptor);
    }
    const std::unique_ptr<char, decltype(&std::free)> resolved(realpath(path.c_str(), nullptr),
                                                               &std::free);
    if (resolved == nullptr) return CannotWrite(path, errno);
    target = resolved.get();
  }
  std::string temporary = target + ".XXXXXX";
  const int descriptor = mkostemp(temporary.data(), O_CLOEXEC);
  if (descriptor < 0) return CannotWrite(path, errno);
  // mkostemp lets nobody else read; a result is like any other file.
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(descriptor, 0666 & ~mask);
  return OutputFile(std::move(target), std::move(temporary), descriptor);
}

OutputFile::OutputFile(std::string path, std::string temporary, int descriptor)
    : path_(std::move(path)), temporary_(std::move(temporary)), descriptor_(descriptor) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::Status OutputFile::Failed(absl::string_view what) const {
  return MakeError(absl::StatusCode::kFailedPrecondition, "OUTPUT_FAILED",
                   absl::StrCat("cannot ", what, " ", path_, ": ", std::strerror(errno)));
}

absl::Status OutputFile::Write(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed("write");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status OutputFile::Commit() {
  if (temporary_.empty()) {
    if (close(std::exchange(descriptor_, -1)) != 0) return Failed("write");
    return absl::OkStatus();
  }
  if (fsync(descriptor_) != 0) return Failed("write");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return Failed("rename a new file to");
  close(std::exchange(descriptor_, -1));
  return absl::OkStatus();
}

}  // namespace hopscope::common

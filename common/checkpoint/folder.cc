#include "common/checkpoint/folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/errors.h"
#include "common/checkpoint/safetensors.h"

namespace hopscope::checkpoint {
namespace {

constexpr uint64_t kMaxIndexBytes = 64 << 20;

bool Exists(const std::string& folder, absl::string_view name) {
  struct stat stat_buffer = {};
  return stat(absl::StrCat(folder, "/", name).c_str(), &stat_buffer) == 0;
}

}  // namespace

std::vector<std::string> CheckpointFolder::digest_files() const {
  std::vector<std::string> files = weight_files;
  files.emplace_back(kConfigFile);
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

absl::StatusOr<CheckpointFolder> ReadCheckpointFolder(const std::string& path) {
  struct stat stat_buffer = {};
  if (stat(path.c_str(), &stat_buffer) != 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) {
      return MissingFile("CHECKPOINT_NOT_FOUND", "there is no such folder");
    }
    return BrokenCheckpoint("CHECKPOINT_UNREADABLE", std::strerror(error));
  }
  if (!S_ISDIR(stat_buffer.st_mode)) {
    return MissingFile("CHECKPOINT_NOT_FOUND",
                       "it is a file; a checkpoint is a folder with config.json and safetensors");
  }
  if (!Exists(path, kConfigFile)) {
    return MissingFile("CHECKPOINT_MISSING_CONFIG", "the folder has no config.json");
  }
  CheckpointFolder folder;
  folder.path = path;
  if (Exists(path, kWeightFile)) {
    folder.weight_files.emplace_back(kWeightFile);
    return folder;
  }
  if (!Exists(path, kIndexFile)) {
    absl::string_view hint;
    if (Exists(path, "pytorch_model.bin") || Exists(path, "pytorch_model.bin.index.json")) {
      hint = "; its pytorch_model.bin is not read (pickle runs code): convert it to safetensors";
    }
    return MissingFile("CHECKPOINT_MISSING_WEIGHTS",
                       absl::StrCat("the folder has neither model.safetensors nor "
                                    "model.safetensors.index.json",
                                    hint));
  }
  absl::StatusOr<std::string> text =
      ReadSmallFile(path, kIndexFile, kMaxIndexBytes, "CHECKPOINT_INDEX");
  if (!text.ok()) return text.status();
  absl::StatusOr<ShardIndex> index = ParseShardIndex(*text);
  if (!index.ok()) return index.status();
  folder.weight_files.assign(index->files.begin(), index->files.end());
  folder.index = *std::move(index);
  return folder;
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& folder, absl::string_view name,
                                          uint64_t max_bytes, absl::string_view too_large_reason) {
  absl::StatusOr<MappedFile> file = MappedFile::Open(absl::StrCat(folder, "/", name), name);
  if (!file.ok()) return file.status();
  if (file->bytes().size() > max_bytes) {
    return BrokenCheckpoint(
        too_large_reason,
        absl::StrCat(name, ": ", file->bytes().size(), " bytes; at most ", max_bytes, " are read"));
  }
  return std::string(file->bytes());
}

}  // namespace hopscope::checkpoint

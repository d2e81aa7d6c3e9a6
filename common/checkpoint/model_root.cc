#include "common/checkpoint/model_root.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/checkpoint/digest.h"
#include "common/checkpoint/errors.h"
#include "common/checkpoint/folder.h"
#include "common/checkpoint/glob.h"
#include "common/checkpoint/strict_json.h"
#include "common/status.h"

namespace hopscope::checkpoint {
namespace {

constexpr size_t kMaxNameBytes = 1024;
constexpr size_t kMaxDepth = 16;
constexpr int64_t kMaxEntries = 1'000'000;

using Parts = std::vector<absl::string_view>;

absl::Status BadName(absl::string_view name, absl::string_view allowed) {
  return common::MakeError(absl::StatusCode::kInvalidArgument, "CHECKPOINT_NAME",
                           absl::StrCat("checkpoint ", Quoted(name), " is not allowed; ", allowed),
                           {{"value", Quoted(name)}, {"allowed", std::string(allowed)}});
}

// Splits a name or glob; a '/' at its end (as shells complete it) does not count.
absl::StatusOr<Parts> SplitName(absl::string_view name) {
  if (name.empty()) return BadName(name, "it must name a folder under the model root");
  if (name.size() > kMaxNameBytes) {
    return BadName(name, absl::StrCat("it may have at most ", kMaxNameBytes, " bytes"));
  }
  if (!IsUtf8(name) || name.find('\0') != absl::string_view::npos) {
    return BadName(name, "it must be UTF-8 text");
  }
  if (name[0] == '/') return BadName(name, "it must be relative to the model root");
  absl::string_view trimmed = name;
  if (trimmed.back() == '/') trimmed.remove_suffix(1);
  Parts parts = absl::StrSplit(trimmed, '/');
  for (const absl::string_view part : parts) {
    if (part.empty()) return BadName(name, "it must have one '/' between its parts");
    if (part == "..") return BadName(name, "'..' must not be part of it");
    if (part[0] == '.') return BadName(name, "its parts must not begin with '.'");
  }
  return parts;
}

// The path with every link followed; empty with errno where that fails.
std::string RealPath(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return "";
  std::string result = resolved;
  std::free(resolved);
  return result;
}

// Whether `path` is `root` or under it; both are real paths.
bool IsInside(absl::string_view root, absl::string_view path) {
  if (root == "/") return true;
  return absl::StartsWith(path, root) && (path.size() == root.size() || path[root.size()] == '/');
}

bool IsFolder(const std::string& path) {
  struct stat stat_buffer = {};
  return stat(path.c_str(), &stat_buffer) == 0 && S_ISDIR(stat_buffer.st_mode);
}

bool IsFile(const std::string& path) {
  struct stat stat_buffer = {};
  return stat(path.c_str(), &stat_buffer) == 0 && S_ISREG(stat_buffer.st_mode);
}

struct DirectoryEntry {
  std::string name;
  bool is_link = false;
  bool may_be_folder = false;
};

// What is in a folder, but for hidden names and such that cannot be shown (not UTF-8); false where
// it cannot be read.
bool ReadDirectory(const std::string& path, std::vector<DirectoryEntry>* entries) {
  DIR* directory = opendir(path.c_str());
  if (directory == nullptr) return false;
  while (const dirent* entry = readdir(directory)) {
    const absl::string_view name = entry->d_name;
    if (name[0] == '.' || !IsUtf8(name)) continue;
    unsigned char type = entry->d_type;
    if (type == DT_UNKNOWN) {  // some file systems do not say
      struct stat stat_buffer = {};
      if (lstat(absl::StrCat(path, "/", name).c_str(), &stat_buffer) != 0) continue;
      type = S_ISLNK(stat_buffer.st_mode) ? DT_LNK : S_ISDIR(stat_buffer.st_mode) ? DT_DIR : DT_REG;
    }
    entries->push_back({std::string(name), type == DT_LNK, type == DT_DIR || type == DT_LNK});
  }
  closedir(directory);
  return true;
}

// Finds checkpoint folders under a folder of the root.
class Walk {
 public:
  explicit Walk(const std::string& root) : root_(root) {}

  // Appends the names of the checkpoint folders below `name` ("" is the root itself), at most
  // `depth` parts further down. Links that leave the root or lead back to a folder above are not
  // followed, nor is what cannot be read.
  absl::Status Below(const std::string& name, size_t depth, std::vector<std::string>* found) {
    const std::string path = name.empty() ? root_ : absl::StrCat(root_, "/", name);
    struct stat stat_buffer = {};
    if (stat(path.c_str(), &stat_buffer) != 0) return absl::OkStatus();
    const std::pair<dev_t, ino_t> identity(stat_buffer.st_dev, stat_buffer.st_ino);
    if (std::find(above_.begin(), above_.end(), identity) != above_.end()) return absl::OkStatus();
    std::vector<DirectoryEntry> entries;
    if (!ReadDirectory(path, &entries)) return absl::OkStatus();
    entries_seen_ += static_cast<int64_t>(entries.size());
    if (entries_seen_ > kMaxEntries) {
      return common::MakeError(
          absl::StatusCode::kResourceExhausted, "MODEL_ROOT_TOO_LARGE",
          absl::StrCat("there are more than ", kMaxEntries,
                       " files and folders to look through; name a folder deeper in the root"));
    }
    above_.push_back(identity);
    for (const DirectoryEntry& entry : entries) {
      if (!entry.may_be_folder) continue;
      std::string child = name.empty() ? entry.name : absl::StrCat(name, "/", entry.name);
      const std::string child_path = absl::StrCat(root_, "/", child);
      if (entry.is_link) {
        const std::string target = RealPath(child_path);
        if (target.empty() || !IsInside(root_, target) || !IsFolder(target)) continue;
      }
      if (IsFile(absl::StrCat(child_path, "/", kConfigFile))) found->push_back(child);
      if (depth > 1) {
        if (absl::Status status = Below(child, depth - 1, found); !status.ok()) return status;
      }
    }
    above_.pop_back();
    return absl::OkStatus();
  }

 private:
  const std::string& root_;
  std::vector<std::pair<dev_t, ino_t>> above_;
  int64_t entries_seen_ = 0;
};

absl::Status NoSuchCheckpoint(absl::string_view name, absl::string_view what) {
  return MissingFile("CHECKPOINT_NOT_FOUND", absl::StrCat("checkpoint ", Quoted(name), ": ", what),
                     {{"value", Quoted(name)}});
}

}  // namespace

struct ModelRoot::Impl {
  std::string path;
  DigestCache digests;

  // The real path of a name without wildcards; the folder is under the root, and so is each file in
  // it that matters.
  absl::StatusOr<std::string> Locate(absl::string_view name) const;
  absl::StatusOr<std::vector<std::string>> ResolveGlob(absl::string_view name,
                                                       const Parts& parts) const;
};

absl::StatusOr<std::string> ModelRoot::Impl::Locate(absl::string_view name) const {
  HOPSCOPE_ASSIGN_OR_RETURN(const Parts parts, SplitName(name));
  const auto outside = [name](absl::string_view what) {
    return common::MakeError(
        absl::StatusCode::kInvalidArgument, "CHECKPOINT_OUTSIDE_ROOT",
        absl::StrCat("checkpoint ", Quoted(name), ": ", what,
                     " is a link that leaves the model root"),
        {{"value", Quoted(name)}, {"allowed", "folders and files under the model root"}});
  };
  const std::string relative = absl::StrJoin(parts, "/");
  const std::string real = RealPath(absl::StrCat(path, "/", relative));
  if (real.empty()) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return NoSuchCheckpoint(name, "there is no such folder under the model root");
    }
    return BrokenCheckpoint("CHECKPOINT_UNREADABLE",
                            absl::StrCat("checkpoint ", Quoted(name), ": ", std::strerror(errno)));
  }
  if (!IsInside(path, real)) return outside("the folder");
  if (!IsFolder(real)) return NoSuchCheckpoint(name, "it is a file, not a folder");
  std::vector<DirectoryEntry> entries;
  ReadDirectory(real, &entries);
  for (const DirectoryEntry& entry : entries) {
    if (!entry.is_link) continue;
    const std::string target = RealPath(absl::StrCat(real, "/", entry.name));
    if (!target.empty() && !IsInside(path, target) && IsFile(target)) {
      return outside(Quoted(entry.name));
    }
  }
  return real;
}

absl::StatusOr<std::vector<std::string>> ModelRoot::Impl::ResolveGlob(absl::string_view name,
                                                                      const Parts& parts) const {
  // Walks from the last folder that the pattern names in full, no deeper than the pattern reaches.
  size_t literal = 0;
  while (literal + 1 < parts.size() && !HasWildcard(parts[literal])) ++literal;
  const bool any_depth = std::find(parts.begin(), parts.end(), "**") != parts.end();
  const std::string start = absl::StrJoin(parts.begin(), parts.begin() + literal, "/");
  if (literal > 0) HOPSCOPE_RETURN_IF_ERROR(Locate(start).status());
  std::vector<std::string> candidates;
  Walk walk(path);
  HOPSCOPE_RETURN_IF_ERROR(
      walk.Below(start, any_depth ? kMaxDepth : parts.size() - literal, &candidates));
  std::vector<std::string> names;
  for (std::string& candidate : candidates) {
    const Parts candidate_parts = absl::StrSplit(candidate, '/');
    if (MatchPath(parts, candidate_parts)) names.push_back(std::move(candidate));
  }
  if (names.empty()) {
    return NoSuchCheckpoint(name, "it matches no folder with a config.json under the model root");
  }
  std::sort(names.begin(), names.end(), NaturalLess);
  return names;
}

absl::StatusOr<std::unique_ptr<ModelRoot>> ModelRoot::Open(const std::string& path) {
  std::string real = RealPath(path);
  if (real.empty()) {
    const int error = errno;
    const std::string message =
        absl::StrCat("model root ", Quoted(path), ": ", std::strerror(error));
    if (error == ENOENT || error == ENOTDIR) return MissingFile("MODEL_ROOT_NOT_FOUND", message);
    return BrokenCheckpoint("MODEL_ROOT_UNREADABLE", message);
  }
  if (!IsFolder(real)) {
    return BrokenCheckpoint("MODEL_ROOT_UNREADABLE",
                            absl::StrCat("model root ", Quoted(path), " is not a folder"));
  }
  if (access(real.c_str(), R_OK | X_OK) != 0) {
    return BrokenCheckpoint("MODEL_ROOT_UNREADABLE",
                            absl::StrCat("model root ", Quoted(path), ": ", std::strerror(errno)));
  }
  auto impl = std::make_unique<Impl>();
  impl->path = std::move(real);
  return std::unique_ptr<ModelRoot>(new ModelRoot(std::move(impl)));
}

ModelRoot::ModelRoot(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ModelRoot::~ModelRoot() = default;

const std::string& ModelRoot::path() const { return impl_->path; }

absl::StatusOr<std::vector<std::string>> ModelRoot::Resolve(absl::string_view name_or_glob) const {
  HOPSCOPE_ASSIGN_OR_RETURN(const Parts parts, SplitName(name_or_glob));
  if (HasWildcard(name_or_glob)) return impl_->ResolveGlob(name_or_glob, parts);
  HOPSCOPE_ASSIGN_OR_RETURN(const std::string folder, impl_->Locate(name_or_glob));
  const std::string name = absl::StrJoin(parts, "/");
  if (IsFile(absl::StrCat(folder, "/", kConfigFile))) return std::vector<std::string>{name};
  std::vector<std::string> series;
  HOPSCOPE_RETURN_IF_ERROR(Walk(impl_->path).Below(name, 1, &series));
  if (series.empty()) {
    return NoSuchCheckpoint(name_or_glob, absl::StrCat("neither the folder nor any folder directly "
                                                       "in it has a config.json; ",
                                                       name, "/** looks deeper"));
  }
  std::sort(series.begin(), series.end(), NaturalLess);
  return series;
}

absl::StatusOr<std::vector<std::string>> ModelRoot::List() const {
  std::vector<std::string> names;
  HOPSCOPE_RETURN_IF_ERROR(Walk(impl_->path).Below("", kMaxDepth, &names));
  std::sort(names.begin(), names.end(), NaturalLess);
  return names;
}

absl::StatusOr<Checkpoint> ModelRoot::OpenCheckpoint(absl::string_view name) const {
  HOPSCOPE_ASSIGN_OR_RETURN(const std::string folder, impl_->Locate(name));
  absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(folder);
  if (!checkpoint.ok()) {
    return common::Annotate(checkpoint.status(), absl::StrCat("checkpoint ", Quoted(name)));
  }
  return checkpoint;
}

absl::StatusOr<std::string> ModelRoot::Digest(absl::string_view name) const {
  HOPSCOPE_ASSIGN_OR_RETURN(const std::string folder, impl_->Locate(name));
  absl::StatusOr<std::string> digest = impl_->digests.Digest(folder);
  if (!digest.ok()) {
    return common::Annotate(digest.status(), absl::StrCat("checkpoint ", Quoted(name)));
  }
  return digest;
}

}  // namespace hopscope::checkpoint

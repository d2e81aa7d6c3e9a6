// The folder that checkpoints live under, and the only way from a name in a spec to a path on disk.
//
// Names are relative, with '/' between parts; ".." parts, absolute names, and links that leave the
// root are refused with INVALID_ARGUMENT (CHECKPOINT_NAME, CHECKPOINT_OUTSIDE_ROOT). Links within
// the root are followed, hidden folders (.name) are not there at all, and folders more than 16 deep
// are not found. Whoever may write under the root is trusted not to swap folders for links while
// they are opened. Thread-safe.
#ifndef HOPSCOPE_COMMON_CHECKPOINT_MODEL_ROOT_H_
#define HOPSCOPE_COMMON_CHECKPOINT_MODEL_ROOT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/checkpoint.h"

namespace hopscope::checkpoint {

class ModelRoot {
 public:
  // NOT_FOUND where the folder is not there, FAILED_PRECONDITION where it cannot be read.
  static absl::StatusOr<std::unique_ptr<ModelRoot>> Open(const std::string& path);
  ~ModelRoot();

  const std::string& path() const;

  // Names of the checkpoint folders (those with a config.json) that a name or glob (*, ?, [...]
  // within one part, and ** across parts) stands for, in natural order (step-2 before step-10).
  // NOT_FOUND where it matches none. A name without wildcards that is itself no checkpoint but
  // holds checkpoint folders is a series: it stands for all that lie directly in it. A '/' at the
  // end does not count. RESOURCE_EXHAUSTED where there is too much to look through.
  absl::StatusOr<std::vector<std::string>> Resolve(absl::string_view name_or_glob) const;

  // Every checkpoint folder under the root, in natural order.
  absl::StatusOr<std::vector<std::string>> List() const;

  // Opens and checks one completely: config, header of every weight file, every tensor that the
  // family needs with its shape. Errors carry reason CHECKPOINT_* and the name.
  absl::StatusOr<Checkpoint> OpenCheckpoint(absl::string_view name) const;

  // Content digest (see CheckpointRef.digest in the API); remembered by device, inode, size, mtime
  // and ctime of the files.
  absl::StatusOr<std::string> Digest(absl::string_view name) const;

 private:
  struct Impl;
  explicit ModelRoot(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hopscope::checkpoint

#endif  // HOPSCOPE_COMMON_CHECKPOINT_MODEL_ROOT_H_

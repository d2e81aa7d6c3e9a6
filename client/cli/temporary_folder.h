// A folder for the time of one command, which is removed even where the command was killed: by the
// next one that makes such a folder.
#ifndef HOPSCOPE_CLIENT_CLI_TEMPORARY_FOLDER_H_
#define HOPSCOPE_CLIENT_CLI_TEMPORARY_FOLDER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hopscope::cli {

// Holds a lock (flock) on its folder while it lives; the system ends the lock of a process that is
// killed. Folders of the same user and prefix that nobody holds are left over.
class TemporaryFolder {
 public:
  // A new folder PREFIX-XXXXXX in $TMPDIR, else /tmp; those that are left over are removed first.
  // FAILED_PRECONDITION, reason NO_TEMPORARY_FOLDER, where there can be none.
  static absl::StatusOr<std::unique_ptr<TemporaryFolder>> Make(absl::string_view prefix);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string File(absl::string_view name) const;

 private:
  TemporaryFolder(std::string path, int descriptor);

  const std::string path_;
  const int descriptor_;
};

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_TEMPORARY_FOLDER_H_

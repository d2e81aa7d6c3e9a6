// A file that appears under its name complete, or not at all: written beside it under another name,
// then renamed. Behind a
// symbolic link it is the link's target that is replaced. What is no regular file, such as
// /dev/stdout or a pipe, is written to as it is.
//
// Not thread-safe.
#ifndef HOPSCOPE_COMMON_OUTPUT_FILE_H_
#define HOPSCOPE_COMMON_OUTPUT_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hopscope::common {

class OutputFile {
 public:
  // Errors are FAILED_PRECONDITION with reason OUTPUT_FAILED and say what the system said.
  static absl::StatusOr<OutputFile> Create(const std::string& path);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  // Removes what was written, unless it was committed.
  ~OutputFile();

  absl::Status Write(absl::string_view bytes);

  // Makes the file durable and gives it its name, in place of an older file. Nothing may be written
  // after.
  absl::Status Commit();

 private:
  // `temporary` is empty where `path` is written to directly.
  OutputFile(std::string path, std::string temporary, int descriptor);
  absl::Status Failed(absl::string_view what) const;

  std::string path_;
  std::string temporary_;
  int descriptor_;
};

}  // namespace hopscope::common

#endif  // HOPSCOPE_COMMON_OUTPUT_FILE_H_

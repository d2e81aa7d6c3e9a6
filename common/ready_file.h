// Tells whoever started a program where it listens: with port 0 there is no other way to know.
#ifndef HOPSCOPE_COMMON_READY_FILE_H_
#define HOPSCOPE_COMMON_READY_FILE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace hopscope::common {

// Writes one JSON object with the entries ("listen", "metrics_listen": HOST:PORT each) and "pid",
// so that a reader finds all of it or no file. FAILED_PRECONDITION names --ready_file.
absl::Status WriteReadyFile(const std::string& path,
                            const std::vector<std::pair<std::string, std::string>>& entries);

}  // namespace hopscope::common

#endif  // HOPSCOPE_COMMON_READY_FILE_H_

#include "common/ready_file.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/output_file.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace hopscope::common {

absl::Status WriteReadyFile(const std::string& path,
                            const std::vector<std::pair<std::string, std::string>>& entries) {
  nlohmann::ordered_json json;
  for (const auto& [key, value] : entries) json[key] = value;
  json["pid"] = getpid();

  const absl::Status written = [&]() -> absl::Status {
    HOPSCOPE_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
    HOPSCOPE_RETURN_IF_ERROR(file.Write(json.dump() + "\n"));
    return file.Commit();
  }();
  if (!written.ok()) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "READY_FILE_UNWRITABLE",
                     absl::StrCat("--ready_file: ", written.message()),
                     {{"field", "--ready_file"}, {"value", path}});
  }
  return absl::OkStatus();
}

}  // namespace hopscope::common

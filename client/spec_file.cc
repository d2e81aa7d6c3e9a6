#include "client/spec_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/yaml_tree.h"
#include "common/status.h"

namespace hopscope::client {
namespace {

absl::StatusOr<std::string> ReadAll(std::FILE* file, const std::string& path, size_t max_bytes) {
  std::string text;
  char buffer[1 << 14];
  while (true) {
    const size_t got = std::fread(buffer, 1, sizeof(buffer), file);
    text.append(buffer, got);
    // One byte more than allowed is enough for the parser to refuse it.
    if (text.size() > max_bytes || got < sizeof(buffer)) break;
  }
  if (std::ferror(file) != 0) {
    return common::MakeError(absl::StatusCode::kUnknown, "FILE_UNREADABLE",
                             absl::StrCat(path, ": ", std::strerror(errno)), {{"value", path}});
  }
  return text;
}

}  // namespace

absl::StatusOr<ParsedSpec> ReadSpecFile(const std::string& path) {
  const size_t max_bytes = YamlLimits{}.max_bytes;
  if (path == "-") {
    HOPSCOPE_ASSIGN_OR_RETURN(const std::string text, ReadAll(stdin, "standard input", max_bytes));
    return ParseSpecYaml(text, "standard input");
  }
  errno = 0;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (file == nullptr) {
    const int error = errno;
    return common::MakeError(absl::ErrnoToStatusCode(error),
                             error == ENOENT ? "FILE_NOT_FOUND" : "FILE_UNREADABLE",
                             absl::StrCat(path, ": ", std::strerror(error)), {{"value", path}});
  }
  HOPSCOPE_ASSIGN_OR_RETURN(const std::string text, ReadAll(file.get(), path, max_bytes));
  return ParseSpecYaml(text, path);
}

absl::Status LocateInSpec(const ParsedSpec& parsed, const absl::Status& status) {
  const auto info = common::GetErrorInfo(status);
  if (!info.has_value() || info->metadata().contains("line")) return status;
  const auto field = info->metadata().find("field");
  if (field == info->metadata().end()) return status;
  std::string path = field->second;
  while (true) {
    if (const auto mark = parsed.marks.find(path); mark != parsed.marks.end()) {
      return common::Annotate(
          status, absl::StrCat(parsed.file, ":", mark->second.line, ":", mark->second.column));
    }
    const size_t cut = path.find_last_of(".[");
    if (cut == std::string::npos) return status;
    path.resize(cut);
  }
}

}  // namespace hopscope::client

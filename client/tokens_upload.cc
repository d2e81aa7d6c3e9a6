#include "client/tokens_upload.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/spec_file.h"
#include "common/status.h"
#include "common/tokens/tokens_file.h"

namespace hopscope::client {
namespace {

// Below the 1 MiB that a message may hold.
constexpr size_t kPieceBytes = 512 << 10;

absl::Status FileError(const std::string& path, int error) {
  return common::MakeError(absl::ErrnoToStatusCode(error),
                           error == ENOENT ? "FILE_NOT_FOUND" : "FILE_UNREADABLE",
                           absl::StrCat(path, ": ", std::strerror(error)), {{"value", path}});
}

// An open file that is read from anywhere.
class TokensFile {
 public:
  explicit TokensFile(std::string path)
      : path_(std::move(path)), file_(std::fopen(path_.c_str(), "rb"), &std::fclose) {
    if (file_ == nullptr) error_ = errno;
  }

  // Empty: the end.
  absl::StatusOr<std::string> Read(int64_t offset) const {
    if (file_ == nullptr) return FileError(path_, error_);
    std::string piece(kPieceBytes, '\0');
    errno = 0;
    if (fseeko(file_.get(), offset, SEEK_SET) != 0) return FileError(path_, errno);
    piece.resize(std::fread(piece.data(), 1, piece.size(), file_.get()));
    if (std::ferror(file_.get()) != 0) return FileError(path_, errno);
    return piece;
  }

 private:
  const std::string path_;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  int error_ = 0;
};

// Before anything is sent: the error is the same as the server's, but sooner.
absl::Status Check(const TokensFile& file, const std::string& path) {
  tokens::TokensParser parser(path, {}, [](const tokens::TokensLine&) { return absl::OkStatus(); });
  for (int64_t offset = 0;;) {
    HOPSCOPE_ASSIGN_OR_RETURN(const std::string piece, file.Read(offset));
    if (piece.empty()) return parser.Finish();
    HOPSCOPE_RETURN_IF_ERROR(parser.Append(piece));
    offset += static_cast<int64_t>(piece.size());
  }
}

}  // namespace

absl::Status UploadTokensFiles(const Client& client, ParsedSpec& parsed) {
  for (const auto& [task, name] : parsed.tokens_files) {
    const std::string path =
        (std::filesystem::path(parsed.file).parent_path() / name).lexically_normal().string();
    const TokensFile file(path);
    const std::string field = absl::StrCat("spec.tasks[", task, "].tokens_file");
    if (const absl::Status status = Check(file, path); !status.ok()) {
      return LocateInSpec(parsed, common::MakeError(status.code(), common::ErrorReason(status),
                                                    status.message(), {{"field", field}}));
    }
    HOPSCOPE_ASSIGN_OR_RETURN(
        const v1::UploadTokensResponse response,
        client.UploadTokens([&file](int64_t offset) { return file.Read(offset); }));
    parsed.spec.mutable_tasks(task)->set_tokens_digest(response.digest());
  }
  return absl::OkStatus();
}

}  // namespace hopscope::client

// Reads a tokens file: one JSON object a line,
//   {"tokens": [3, 14, 15], "label": 92, "queries": [2], "blocks": [[0, 1], [1, 3]],
//    "needle": [0, 1]}
// where all but "tokens" may be left out. Blank lines are skipped.
//
// Strict: unknown and repeated keys, other types, slots outside the sequence and ids outside the
// vocabulary are errors, and name the line. Memory is bounded by the limits.
#ifndef HOPSCOPE_COMMON_TOKENS_TOKENS_FILE_H_
#define HOPSCOPE_COMMON_TOKENS_TOKENS_FILE_H_

#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hopscope::tokens {

// Reason of errors in a file.
inline constexpr absl::string_view kInvalid = "TOKENS_FILE_INVALID";

struct TokensLine {
  int64_t number = 0;  // of the line in the file, from 1
  int64_t offset = 0;  // of its first byte in the file
  int64_t bytes = 0;   // without its end
  std::vector<int32_t> tokens;
  std::optional<int32_t> label;  // token id that should follow
  std::vector<int32_t> queries;  // slots, from 0, rising
  // Runs of slots [begin, end).
  std::vector<std::pair<int32_t, int32_t>> blocks;
  std::optional<std::pair<int32_t, int32_t>> needle;

  // The largest token id, of the label too.
  int32_t MaxId() const;
};

struct TokensLimits {
  int64_t vocab_size = int64_t{1} << 31;  // ids are below it
  int64_t max_line_bytes = int64_t{16} << 20;
  int64_t max_tokens = 1 << 20;  // of a sequence
  int64_t max_lines = 10'000'000;
};

// One line, without its end; `offset` and `bytes` stay 0.
absl::StatusOr<TokensLine> ParseTokensLine(absl::string_view text, int64_t number,
                                           const TokensLimits& limits);

// Reads a file that comes in pieces, cut anywhere.
class TokensParser {
 public:
  using OnLine = std::function<absl::Status(TokensLine line)>;

  // `name` stands for the file in errors. `on_line` is given the sequences in order; an error of
  // its own ends the reading.
  TokensParser(std::string name, const TokensLimits& limits, OnLine on_line)
      : name_(std::move(name)), limits_(limits), on_line_(std::move(on_line)) {}

  // INVALID_ARGUMENT with reason kInvalid, "NAME:LINE: what is wrong". Not to be used further after
  // an error.
  absl::Status Append(absl::string_view piece);

  // The last line may lack its end. A file without a sequence is an error.
  absl::Status Finish();

 private:
  absl::Status TakeLine();

  const std::string name_;
  const TokensLimits limits_;
  const OnLine on_line_;
  std::string text_;    // of the line that is being read
  int64_t offset_ = 0;  // of its first byte
  int64_t number_ = 1;  // of it
  int64_t sequences_ = 0;
};

// Errors as TokensParser's.
absl::StatusOr<std::vector<TokensLine>> ReadTokens(std::istream& file, absl::string_view name,
                                                   const TokensLimits& limits);

// NOT_FOUND with reason TOKENS_FILE_MISSING where the file cannot be read.
absl::StatusOr<std::vector<TokensLine>> ReadTokensFile(const std::string& path,
                                                       const TokensLimits& limits);

}  // namespace hopscope::tokens

#endif  // HOPSCOPE_COMMON_TOKENS_TOKENS_FILE_H_

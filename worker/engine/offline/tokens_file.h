// Reads a tokens file: one JSON object a line,
//   {"tokens": [3, 14, 15], "label": 92, "queries": [2], "blocks": [[0, 1], [1, 3]],
//    "needle": [0, 1]}
// where all but "tokens" may be left out. Blank lines are skipped.
//
// Strict: unknown and repeated keys, other types, slots outside the sequence and ids outside the
// vocabulary are errors, and name the line. Memory is bounded by the limits.
#ifndef HOPSCOPE_WORKER_ENGINE_OFFLINE_TOKENS_FILE_H_
#define HOPSCOPE_WORKER_ENGINE_OFFLINE_TOKENS_FILE_H_

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hopscope::engine {

struct TokensLine {
  int64_t number = 0;  // of the line in the file, from 1
  std::vector<int32_t> tokens;
  std::optional<int32_t> label;  // token id that should follow
  std::vector<int32_t> queries;  // slots, from 0, rising
  // Runs of slots [begin, end).
  std::vector<std::pair<int32_t, int32_t>> blocks;
  std::optional<std::pair<int32_t, int32_t>> needle;
};

struct TokensLimits {
  int64_t vocab_size = 0;  // ids are below it
  int64_t max_line_bytes = int64_t{16} << 20;
  int64_t max_tokens = 1 << 20;  // of a sequence
  int64_t max_lines = 10'000'000;
};

// One line, without its end.
absl::StatusOr<TokensLine> ParseTokensLine(absl::string_view text, int64_t number,
                                           const TokensLimits& limits);

// INVALID_ARGUMENT with reason TOKENS_FILE_INVALID, "NAME:LINE: what is wrong"; a file without a
// line is one.
absl::StatusOr<std::vector<TokensLine>> ReadTokens(std::istream& file, absl::string_view name,
                                                   const TokensLimits& limits);

// NOT_FOUND with reason TOKENS_FILE_MISSING where the file cannot be read.
absl::StatusOr<std::vector<TokensLine>> ReadTokensFile(const std::string& path,
                                                       const TokensLimits& limits);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_OFFLINE_TOKENS_FILE_H_

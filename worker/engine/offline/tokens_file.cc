#include "worker/engine/offline/tokens_file.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/strict_json.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace hopscope::engine {
namespace {

using nlohmann::json;

constexpr absl::string_view kReason = "TOKENS_FILE_INVALID";
constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

// An object, arrays in it, and pairs in those.
constexpr int kMaxDepth = 4;

absl::Status Invalid(absl::string_view message) {
  return common::MakeError(absl::StatusCode::kInvalidArgument, kReason, message);
}

// An integer from 0 to below `end`.
absl::StatusOr<int32_t> ReadInteger(const json& value, int64_t end, absl::string_view what) {
  if (!value.is_number_integer() || value < 0 || value >= end) {
    return Invalid(absl::StrCat(what, " must be an integer from 0 to ", end - 1));
  }
  return value.get<int32_t>();
}

absl::StatusOr<std::vector<int32_t>> ReadIntegers(const json& value, int64_t end, int64_t max_count,
                                                  absl::string_view what) {
  if (!value.is_array() || value.empty() || static_cast<int64_t>(value.size()) > max_count) {
    return Invalid(absl::StrCat(what, " must be a list of 1 to ", max_count, " integers"));
  }
  std::vector<int32_t> integers;
  integers.reserve(value.size());
  for (const json& element : value) {
    HOPSCOPE_ASSIGN_OR_RETURN(
        const int32_t integer,
        ReadInteger(element, end, absl::StrCat(what, "[", integers.size(), "]")));
    integers.push_back(integer);
  }
  return integers;
}

// [begin, end) with begin < end <= tokens.
absl::StatusOr<std::pair<int32_t, int32_t>> ReadRun(const json& value, int64_t tokens,
                                                    absl::string_view what) {
  if (!value.is_array() || value.size() != 2) {
    return Invalid(absl::StrCat(what, " must be a pair [begin, end)"));
  }
  HOPSCOPE_ASSIGN_OR_RETURN(const int32_t begin,
                            ReadInteger(value[0], tokens, absl::StrCat(what, "[0]")));
  HOPSCOPE_ASSIGN_OR_RETURN(const int32_t end,
                            ReadInteger(value[1], tokens + 1, absl::StrCat(what, "[1]")));
  if (begin >= end) return Invalid(absl::StrCat(what, " must end after it begins"));
  return std::make_pair(begin, end);
}

// The next line without its end; false at the end of the file. A line that is too long is cut one
// byte past the limit.
bool ReadLine(std::istream& file, int64_t max_bytes, std::string* line) {
  line->clear();
  std::streambuf* const buffer = file.rdbuf();
  for (int c = buffer->sbumpc(); c != std::char_traits<char>::eof(); c = buffer->sbumpc()) {
    if (c == '\n') return true;
    line->push_back(static_cast<char>(c));
    if (static_cast<int64_t>(line->size()) > max_bytes) return true;
  }
  return !line->empty();
}

}  // namespace

absl::StatusOr<TokensLine> ParseTokensLine(absl::string_view text, int64_t number,
                                           const TokensLimits& limits) {
  absl::StatusOr<json> parsed = checkpoint::ParseStrictJson(text, kMaxDepth);
  if (!parsed.ok()) return Invalid(parsed.status().message());
  if (!parsed->is_object()) return Invalid("a line must be a JSON object");
  const auto tokens = parsed->find("tokens");
  if (tokens == parsed->end()) return Invalid("\"tokens\" is missing");
  TokensLine line{.number = number};
  HOPSCOPE_ASSIGN_OR_RETURN(line.tokens,
                            ReadIntegers(*tokens, limits.vocab_size, limits.max_tokens, "tokens"));
  const int64_t count = static_cast<int64_t>(line.tokens.size());
  for (const auto& [key, value] : parsed->items()) {
    if (key == "tokens") continue;
    if (key == "label") {
      HOPSCOPE_ASSIGN_OR_RETURN(line.label, ReadInteger(value, limits.vocab_size, key));
    } else if (key == "queries") {
      HOPSCOPE_ASSIGN_OR_RETURN(line.queries, ReadIntegers(value, count, count, key));
      if (std::adjacent_find(line.queries.begin(), line.queries.end(),
                             std::greater_equal<int32_t>()) != line.queries.end()) {
        return Invalid("queries must rise");
      }
    } else if (key == "blocks") {
      if (!value.is_array() || value.empty()) {
        return Invalid("blocks must be a list of pairs [begin, end)");
      }
      for (const json& block : value) {
        HOPSCOPE_ASSIGN_OR_RETURN(
            const auto run,
            ReadRun(block, count, absl::StrCat("blocks[", line.blocks.size(), "]")));
        if (!line.blocks.empty() && run.first < line.blocks.back().second) {
          return Invalid("blocks must follow one another without overlap");
        }
        line.blocks.push_back(run);
      }
    } else if (key == "needle") {
      HOPSCOPE_ASSIGN_OR_RETURN(line.needle, ReadRun(value, count, key));
    } else {
      return Invalid(absl::StrCat("unknown key ", json(key).dump(-1, ' ', true),
                                  "; allowed are tokens, label, queries, blocks, needle"));
    }
  }
  return line;
}

absl::StatusOr<std::vector<TokensLine>> ReadTokens(std::istream& file, absl::string_view name,
                                                   const TokensLimits& limits) {
  std::vector<TokensLine> lines;
  std::string text;
  for (int64_t number = 1; ReadLine(file, limits.max_line_bytes, &text); ++number) {
    const std::string where = absl::StrCat(name, ":", number);
    if (static_cast<int64_t>(text.size()) > limits.max_line_bytes) {
      return Invalid(
          absl::StrCat(where, ": the line is longer than ", limits.max_line_bytes, " bytes"));
    }
    if (number > limits.max_lines) {
      return Invalid(absl::StrCat(where, ": more than ", limits.max_lines, " lines"));
    }
    // Editors of some systems begin UTF-8 files with a byte order mark, which is no JSON.
    if (number == 1 && absl::StartsWith(text, kByteOrderMark)) text.erase(0, kByteOrderMark.size());
    if (absl::StripAsciiWhitespace(text).empty()) continue;
    absl::StatusOr<TokensLine> line = ParseTokensLine(text, number, limits);
    if (!line.ok()) return common::Annotate(line.status(), where);
    lines.push_back(*std::move(line));
  }
  if (lines.empty()) return Invalid(absl::StrCat(name, ": holds no sequence"));
  return lines;
}

absl::StatusOr<std::vector<TokensLine>> ReadTokensFile(const std::string& path,
                                                       const TokensLimits& limits) {
  std::ifstream file(path, std::ios::binary);
  // A folder opens, but cannot be read.
  if (!file || file.peek() == std::char_traits<char>::eof()) {
    if (!file.is_open() || file.bad()) {
      return common::MakeError(absl::StatusCode::kNotFound, "TOKENS_FILE_MISSING",
                               absl::StrCat("tokens file ", path, " cannot be read"));
    }
    file.clear();
  }
  return ReadTokens(file, path, limits);
}

}  // namespace hopscope::engine

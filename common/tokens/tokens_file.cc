#include "common/tokens/tokens_file.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/checkpoint/strict_json.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace hopscope::tokens {
namespace {

using nlohmann::json;

// Work on blocks grows with the square of their number.
constexpr size_t kMaxBlocks = 256;

constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

// An object, arrays in it, and pairs in those.
constexpr int kMaxDepth = 4;

absl::Status Invalid(absl::string_view message) {
  return common::MakeError(absl::StatusCode::kInvalidArgument, kInvalid, message);
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
      if (value.size() > kMaxBlocks) {
        return Invalid(absl::StrCat(value.size(), " blocks; at most ", kMaxBlocks));
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

int32_t TokensLine::MaxId() const {
  return std::max(*std::max_element(tokens.begin(), tokens.end()), label.value_or(0));
}

absl::Status TokensParser::Append(absl::string_view piece) {
  while (!piece.empty()) {
    const size_t end = piece.find('\n');
    const absl::string_view part = piece.substr(0, end);
    // Before it is kept, so that a line of any length costs no more than the limit.
    if (static_cast<int64_t>(text_.size() + part.size()) > limits_.max_line_bytes) {
      return Invalid(absl::StrCat(name_, ":", number_, ": the line is longer than ",
                                  limits_.max_line_bytes, " bytes"));
    }
    text_.append(part.data(), part.size());
    if (end == absl::string_view::npos) return absl::OkStatus();
    piece.remove_prefix(end + 1);
    HOPSCOPE_RETURN_IF_ERROR(TakeLine());
  }
  return absl::OkStatus();
}

absl::Status TokensParser::Finish() {
  if (!text_.empty()) HOPSCOPE_RETURN_IF_ERROR(TakeLine());
  if (sequences_ == 0) return Invalid(absl::StrCat(name_, ": holds no sequence"));
  return absl::OkStatus();
}

absl::Status TokensParser::TakeLine() {
  const std::string where = absl::StrCat(name_, ":", number_);
  if (number_ > limits_.max_lines) {
    return Invalid(absl::StrCat(where, ": more than ", limits_.max_lines, " lines"));
  }
  // Editors of some systems begin UTF-8 files with a byte order mark, which is no JSON.
  absl::string_view text = text_;
  if (number_ == 1) absl::ConsumePrefix(&text, kByteOrderMark);
  if (!absl::StripAsciiWhitespace(text).empty()) {
    absl::StatusOr<TokensLine> line = ParseTokensLine(text, number_, limits_);
    if (!line.ok()) return common::Annotate(line.status(), where);
    line->offset = offset_ + static_cast<int64_t>(text_.size() - text.size());
    line->bytes = static_cast<int64_t>(text.size());
    ++sequences_;
    HOPSCOPE_RETURN_IF_ERROR(on_line_(*std::move(line)));
  }
  offset_ += static_cast<int64_t>(text_.size()) + 1;
  ++number_;
  text_.clear();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TokensLine>> ReadTokens(std::istream& file, absl::string_view name,
                                                   const TokensLimits& limits) {
  std::vector<TokensLine> lines;
  TokensParser parser(std::string(name), limits, [&lines](TokensLine line) {
    lines.push_back(std::move(line));
    return absl::OkStatus();
  });
  std::vector<char> buffer(1 << 16);
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    HOPSCOPE_RETURN_IF_ERROR(parser.Append({buffer.data(), static_cast<size_t>(file.gcount())}));
  }
  HOPSCOPE_RETURN_IF_ERROR(parser.Finish());
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

}  // namespace hopscope::tokens

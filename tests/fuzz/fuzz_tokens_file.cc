// Reads arbitrary bytes as a tokens file, whole and in pieces: the same sequences or the same
// error, and every sequence keeps what the format promises.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/status.h"
#include "common/tokens/tokens_file.h"
#include "tests/fuzz/require.h"

namespace {

using ::hopscope::tokens::TokensLimits;
using ::hopscope::tokens::TokensLine;
using ::hopscope::tokens::TokensParser;

constexpr TokensLimits kLimits = {
    .vocab_size = 1000, .max_line_bytes = 4096, .max_tokens = 64, .max_lines = 50};

absl::Status Read(absl::string_view text, size_t piece, std::vector<TokensLine>* lines) {
  TokensParser parser("fuzz.jsonl", kLimits, [lines](TokensLine line) {
    lines->push_back(std::move(line));
    return absl::OkStatus();
  });
  for (size_t at = 0; at < text.size(); at += piece) {
    if (const absl::Status status = parser.Append(text.substr(at, piece)); !status.ok()) {
      return status;
    }
  }
  return parser.Finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<TokensLine> lines;
  const absl::Status status = Read(text, std::max<size_t>(size, 1), &lines);
  std::vector<TokensLine> pieces;
  HOPSCOPE_REQUIRE(Read(text, 7, &pieces) == status);
  HOPSCOPE_REQUIRE(pieces.size() == lines.size());
  HOPSCOPE_REQUIRE(status.ok() ||
                   hopscope::common::ErrorReason(status) == hopscope::tokens::kInvalid);
  HOPSCOPE_REQUIRE(!status.ok() || !lines.empty());
  for (const TokensLine& line : lines) {
    const auto count = static_cast<int64_t>(line.tokens.size());
    HOPSCOPE_REQUIRE(count >= 1 && count <= kLimits.max_tokens);
    HOPSCOPE_REQUIRE(line.MaxId() >= 0 && line.MaxId() < kLimits.vocab_size);
    for (const int32_t query : line.queries) HOPSCOPE_REQUIRE(query >= 0 && query < count);
    for (const auto& [begin, end] : line.blocks) HOPSCOPE_REQUIRE(begin < end && end <= count);
    // The extent holds the line alone.
    HOPSCOPE_REQUIRE(line.offset + line.bytes <= static_cast<int64_t>(size));
    const auto again = hopscope::tokens::ParseTokensLine(text.substr(line.offset, line.bytes),
                                                         line.number, kLimits);
    HOPSCOPE_REQUIRE(again.ok() && again->tokens == line.tokens && again->label == line.label);
  }
  return 0;
}

#include "common/spec/text.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/utf8.h"

namespace hopscope::spec {
namespace {

constexpr size_t kMaxQuotedBytes = 80;
constexpr size_t kMaxCloseDistance = 3;

// Fewest insertions, deletions and substitutions of a byte that turn one text into the other.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Quoted(absl::string_view text) {
  const absl::string_view shown = common::CutUtf8(text, kMaxQuotedBytes);
  return absl::StrCat("\"", absl::Utf8SafeCEscape(common::ReplaceInvalidUtf8(shown)),
                      shown.size() < text.size() ? "\"..." : "\"");
}

std::string OneOf(absl::string_view name, const std::vector<std::string>& names) {
  std::string text = absl::StrCat("one of ", absl::StrJoin(names, ", "));
  if (names.empty() || name.empty() || name.size() > kMaxQuotedBytes) return text;
  const std::string lower = absl::AsciiStrToLower(name);
  const auto distance = [&lower](absl::string_view other) { return EditDistance(lower, other); };
  const std::string& nearest = *std::min_element(
      names.begin(), names.end(), [&distance](const std::string& a, const std::string& b) {
        return distance(a) < distance(b);
      });
  // Close: a few slips, and fewer than half of the name.
  const size_t slips = distance(nearest);
  if (slips <= kMaxCloseDistance && 2 * slips < nearest.size()) {
    absl::StrAppend(&text, "; did you mean ", nearest, "?");
  }
  return text;
}

bool IsPrintableUtf8(absl::string_view text) {
  if (common::ReplaceInvalidUtf8(text) != text) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte < 0x20 || byte == 0x7F) return false;
    // U+0080 to U+009F are C2 80 to C2 9F; C2 is only ever a lead byte.
    if (byte == 0xC2 && static_cast<uint8_t>(text[i + 1]) < 0xA0) return false;
  }
  return true;
}

}  // namespace hopscope::spec

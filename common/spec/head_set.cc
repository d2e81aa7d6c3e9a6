#include "common/spec/head_set.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace hopscope::spec {
namespace {

// Digits of a layer or head: more than any model has.
constexpr size_t kMaxDigits = 6;

// A number without sign, leading zeros or spaces.
bool ParseIndex(absl::string_view text, int64_t* index) {
  if (text.empty() || text.size() > kMaxDigits || (text.size() > 1 && text[0] == '0') ||
      !std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isdigit(c); })) {
    return false;
  }
  return absl::SimpleAtoi(text, index);
}

// "*", a number, or two rising numbers with "-" between them.
bool ParseRange(absl::string_view text, IndexRange* range) {
  if (text == "*") return true;
  const std::vector<absl::string_view> ends = absl::StrSplit(text, '-');
  std::pair<int64_t, int64_t> indices;
  if (ends.size() > 2 || !ParseIndex(ends.front(), &indices.first) ||
      !ParseIndex(ends.back(), &indices.second) ||
      (ends.size() == 2 && indices.first >= indices.second)) {
    return false;
  }
  *range = indices;
  return true;
}

}  // namespace

std::optional<std::vector<HeadPattern>> ParseHeadSet(absl::string_view text) {
  std::vector<HeadPattern> parts;
  for (const absl::string_view part : absl::StrSplit(text, '+')) {
    const std::vector<absl::string_view> sides = absl::StrSplit(part, '.');
    HeadPattern pattern;
    if (sides.size() != 2 || !ParseRange(sides[0], &pattern.layers) ||
        !ParseRange(sides[1], &pattern.heads)) {
      return std::nullopt;
    }
    parts.push_back(pattern);
  }
  std::sort(parts.begin(), parts.end());
  if (std::adjacent_find(parts.begin(), parts.end()) != parts.end()) return std::nullopt;
  return parts;
}

std::optional<std::vector<std::pair<int64_t, int64_t>>> ExpandHeadSet(
    const std::vector<HeadPattern>& set, int64_t layers, int64_t heads) {
  std::set<std::pair<int64_t, int64_t>> all;
  for (const HeadPattern& part : set) {
    const auto [first_layer, last_layer] = part.layers.value_or(std::pair(int64_t{0}, layers - 1));
    const auto [first_head, last_head] = part.heads.value_or(std::pair(int64_t{0}, heads - 1));
    if (last_layer >= layers || last_head >= heads) return std::nullopt;
    for (int64_t layer = first_layer; layer <= last_layer; ++layer) {
      for (int64_t head = first_head; head <= last_head; ++head) all.emplace(layer, head);
    }
  }
  return std::vector<std::pair<int64_t, int64_t>>(all.begin(), all.end());
}

}  // namespace hopscope::spec

#include "common/checkpoint/glob.h"

#include <vector>

#include "absl/strings/ascii.h"

namespace hopscope::checkpoint {
namespace {

// A set such as [a-z_] at the start of `pattern`: its length, or 0 where it is never closed.
// `matches` says whether `c` is in it.
size_t MatchSet(absl::string_view pattern, char c, bool* matches) {
  size_t i = 1;
  const bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (negated) ++i;
  bool in_set = false;
  const auto byte = [](char x) { return static_cast<unsigned char>(x); };
  // A ']' that comes first is a member.
  for (size_t first = i; i < pattern.size() && (i == first || pattern[i] != ']'); ++i) {
    const char low = pattern[i];
    char high = low;
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      high = pattern[i + 2];
      i += 2;
    }
    in_set = in_set || (byte(low) <= byte(c) && byte(c) <= byte(high));
  }
  if (i >= pattern.size()) return 0;
  *matches = in_set != negated;
  return i + 1;
}

// Compares the runs of digits at the front of both, and removes them. Leading zeros count only
// where all else is equal.
int CompareNumbers(absl::string_view* a, absl::string_view* b, int* zeros) {
  const auto take = [](absl::string_view* text, size_t* leading) {
    size_t end = 0;
    while (end < text->size() && absl::ascii_isdigit((*text)[end])) ++end;
    absl::string_view digits = text->substr(0, end);
    text->remove_prefix(end);
    *leading = 0;
    while (digits.size() > 1 && digits[0] == '0') {
      digits.remove_prefix(1);
      ++*leading;
    }
    return digits;
  };
  size_t zeros_a = 0;
  size_t zeros_b = 0;
  const absl::string_view digits_a = take(a, &zeros_a);
  const absl::string_view digits_b = take(b, &zeros_b);
  if (*zeros == 0 && zeros_a != zeros_b) *zeros = zeros_a < zeros_b ? -1 : 1;
  if (digits_a.size() != digits_b.size()) return digits_a.size() < digits_b.size() ? -1 : 1;
  return digits_a.compare(digits_b);
}

}  // namespace

bool HasWildcard(absl::string_view pattern) {
  return pattern.find_first_of("*?[") != absl::string_view::npos;
}

bool MatchPart(absl::string_view pattern, absl::string_view name) {
  // Greedy: after a mismatch only the last star has to take one character more.
  size_t p = 0;
  size_t n = 0;
  size_t star = absl::string_view::npos;
  size_t star_name = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_name = n;
      continue;
    }
    size_t used = 0;
    if (p < pattern.size()) {
      bool matches = false;
      if (pattern[p] == '[') used = MatchSet(pattern.substr(p), name[n], &matches);
      if (used == 0) {
        used = 1;
        matches = pattern[p] == '?' || pattern[p] == name[n];
      }
      if (!matches) used = 0;
    }
    if (used > 0) {
      p += used;
      ++n;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      n = ++star_name;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool MatchPath(absl::Span<const absl::string_view> pattern,
               absl::Span<const absl::string_view> path) {
  // reach[i]: the pattern's first parts, as many as looked at so far, can stand for the first i
  // parts of the path.
  std::vector<bool> reach(path.size() + 1, false);
  reach[0] = true;
  for (const absl::string_view part : pattern) {
    std::vector<bool> next(path.size() + 1, false);
    for (size_t i = 0; i <= path.size(); ++i) {
      if (part == "**") {
        next[i] = reach[i] || (i > 0 && next[i - 1]);
      } else {
        next[i] = i > 0 && reach[i - 1] && MatchPart(part, path[i - 1]);
      }
    }
    reach = std::move(next);
  }
  return reach[path.size()];
}

bool NaturalLess(absl::string_view a, absl::string_view b) {
  int zeros = 0;
  while (!a.empty() && !b.empty()) {
    if (absl::ascii_isdigit(a[0]) && absl::ascii_isdigit(b[0])) {
      const int order = CompareNumbers(&a, &b, &zeros);
      if (order != 0) return order < 0;
      continue;
    }
    if (a[0] != b[0]) {
      // A part that ends comes before one that goes on.
      if (a[0] == '/') return true;
      if (b[0] == '/') return false;
      return static_cast<unsigned char>(a[0]) < static_cast<unsigned char>(b[0]);
    }
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  return zeros < 0;
}

}  // namespace hopscope::checkpoint

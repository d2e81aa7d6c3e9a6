#include "server/jobs/page_token.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/spec/text.h"
#include "common/status.h"

namespace hopscope::jobs {
namespace {

constexpr absl::string_view kVersion = "1";

// FNV-1a of 64 bits (Fowler, Noll, Vo): the same in every build and replica, unlike absl::Hash.
uint64_t Fingerprint(absl::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

}  // namespace

std::string MakePageToken(absl::string_view list, absl::Span<const int64_t> cursor) {
  const std::string text = absl::StrCat(kVersion, ".", absl::StrJoin(cursor, "."));
  return absl::WebSafeBase64Escape(
      absl::StrCat(text, ".", absl::Hex(Fingerprint(absl::StrCat(text, "/", list)))));
}

absl::StatusOr<std::vector<int64_t>> ReadPageToken(absl::string_view list, absl::string_view token,
                                                   size_t size) {
  std::string text;
  if (absl::WebSafeBase64Unescape(token, &text)) {
    const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
    std::vector<int64_t> cursor;
    for (size_t i = 1; i + 1 < parts.size(); ++i) {
      int64_t number = 0;
      if (absl::SimpleAtoi(parts[i], &number)) cursor.push_back(number);
    }
    if (cursor.size() == size && MakePageToken(list, cursor) == token) return cursor;
  }
  return common::InvalidField(
      "PAGE_TOKEN_INVALID", "page_token", spec::Quoted(token),
      "the next_page_token of the previous page, with the same request otherwise");
}

absl::StatusOr<int> PageSize(int32_t requested, int fallback, int max) {
  if (requested < 0) {
    return common::InvalidField(
        "VALUE_OUT_OF_RANGE", "page_size", absl::StrCat(requested),
        absl::StrCat("0 (for ", fallback, ") to ", max, "; more gives ", max));
  }
  return requested == 0 ? fallback : std::min(requested, max);
}

}  // namespace hopscope::jobs

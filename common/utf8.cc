#include "common/utf8.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace hopscope::common {
namespace {

// Bytes of the valid character that the text begins with; 0 where it begins with none.
size_t CharacterLength(absl::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  uint32_t point = lead & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    point = point << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (point < kSmallest[length] || point > 0x10ffff) return 0;
  if (point >= 0xd800 && point <= 0xdfff) return 0;
  return length;
}

}  // namespace

std::string ReplaceInvalidUtf8(absl::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    absl::StrAppend(&valid, length > 0 ? text.substr(0, length) : "\xef\xbf\xbd");
    text.remove_prefix(length > 0 ? length : 1);
  }
  return valid;
}

size_t FindInvalidUtf8(absl::string_view text) {
  size_t offset = 0;
  while (offset < text.size()) {
    const size_t length = CharacterLength(text.substr(offset));
    if (length == 0) break;
    offset += length;
  }
  return offset;
}

absl::string_view CutUtf8(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace hopscope::common

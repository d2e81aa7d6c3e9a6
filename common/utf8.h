// What protobuf's string fields ask of text: valid UTF-8, also where it is cut.
#ifndef HOPSCOPE_COMMON_UTF8_H_
#define HOPSCOPE_COMMON_UTF8_H_

#include <string>

#include "absl/strings/string_view.h"

namespace hopscope::common {

// The text with every byte that is not part of valid UTF-8 (RFC 3629: no surrogates, no overlong
// forms) replaced by U+FFFD.
std::string ReplaceInvalidUtf8(absl::string_view text);

// Offset of the first byte that is not part of valid UTF-8; text.size() where all are.
size_t FindInvalidUtf8(absl::string_view text);

// The longest prefix of valid UTF-8 that has at most `max_bytes` and cuts no character.
absl::string_view CutUtf8(absl::string_view text, size_t max_bytes);

}  // namespace hopscope::common

#endif  // HOPSCOPE_COMMON_UTF8_H_

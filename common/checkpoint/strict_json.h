// JSON as strangers may send it: RFC 8259 without extensions, duplicate keys refused, depth
// bounded.
//
// nlohmann's own parser lets the last of several equal keys win, skips a byte order mark, and takes
// a NUL byte for the end of its input; a checkpoint's meaning must not depend on such things.
// Thread-safe.
#ifndef HOPSCOPE_COMMON_CHECKPOINT_STRICT_JSON_H_
#define HOPSCOPE_COMMON_CHECKPOINT_STRICT_JSON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace hopscope::checkpoint {

// Whether `text` is UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF (RFC 3629).
bool IsUtf8(absl::string_view text);

// What nlohmann's parsers do not check: a byte order mark or a NUL byte is INVALID_ARGUMENT.
absl::Status CheckJsonText(absl::string_view text);

// What a SAX handler says of a syntax error: position and cause, without the (perhaps huge) token.
std::string JsonSyntaxError(size_t position, const nlohmann::json::exception& error);

// The value that `text` holds; at most `max_depth` objects and arrays inside one another.
// INVALID_ARGUMENT (a plain status: the caller knows which file it is) otherwise.
absl::StatusOr<nlohmann::json> ParseStrictJson(absl::string_view text, int max_depth);

}  // namespace hopscope::checkpoint

#endif  // HOPSCOPE_COMMON_CHECKPOINT_STRICT_JSON_H_

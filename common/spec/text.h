// Texts as they come in specs and go into error messages.
//
// Pure functions; thread-safe.
#ifndef HOPSCOPE_COMMON_SPEC_TEXT_H_
#define HOPSCOPE_COMMON_SPEC_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hopscope::spec {

// The text in double quotes, on one line, with escapes, cut where it is long: safe in a message
// whatever it holds.
std::string Quoted(absl::string_view text);

// "one of number, letter", with "; did you mean number?" where one of the names is close to `name`.
std::string OneOf(absl::string_view name, const std::vector<std::string>& names);

// Well-formed UTF-8 (no overlong forms, surrogates, or code points above U+10FFFF) without control
// characters (below U+0020, U+007F to U+009F).
bool IsPrintableUtf8(absl::string_view text);

}  // namespace hopscope::spec

#endif  // HOPSCOPE_COMMON_SPEC_TEXT_H_

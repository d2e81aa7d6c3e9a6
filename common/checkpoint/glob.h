// Globs over folder names, and the order in which people expect numbered names.
//
// Pure functions; thread-safe.
#ifndef HOPSCOPE_COMMON_CHECKPOINT_GLOB_H_
#define HOPSCOPE_COMMON_CHECKPOINT_GLOB_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hopscope::checkpoint {

// Whether the name has a wildcard: *, ? or [.
bool HasWildcard(absl::string_view pattern);

// One part of a path (no '/'). * stands for any run of characters, ? for one, [a-z] for one of a
// set, [!a-z] for one outside it; a '[' that is never closed stands for itself. At most
// length(pattern) * length(name) steps.
bool MatchPart(absl::string_view pattern, absl::string_view name);

// A path against a pattern, both split at '/'; the part ** stands for any number of parts, none
// included.
bool MatchPath(absl::Span<const absl::string_view> pattern,
               absl::Span<const absl::string_view> path);

// Order of names: part by part, runs of digits by their value (step-2 before step-10), the rest by
// bytes. A strict weak order in which different names are never equal.
bool NaturalLess(absl::string_view a, absl::string_view b);

}  // namespace hopscope::checkpoint

#endif  // HOPSCOPE_COMMON_CHECKPOINT_GLOB_H_

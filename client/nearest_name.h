// Finds what somebody probably meant to type.
#ifndef HOPSCOPE_CLIENT_NEAREST_NAME_H_
#define HOPSCOPE_CLIENT_NEAREST_NAME_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hopscope::client {

// The known name that takes the fewest single-character insertions, deletions, replacements and
// swaps of neighbours to make from `typed`; empty where none is within a third of its length (at
// least one). The first of equals.
std::string NearestName(absl::string_view typed, const std::vector<std::string>& known);

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_NEAREST_NAME_H_

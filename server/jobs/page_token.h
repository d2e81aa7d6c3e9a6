// Page tokens: opaque to clients, and good only for the list that made them.
//
// Pure functions; thread-safe.
#ifndef HOPSCOPE_SERVER_JOBS_PAGE_TOKEN_H_
#define HOPSCOPE_SERVER_JOBS_PAGE_TOKEN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hopscope::jobs {

// `list` says which list it is, with everything that selects and orders its rows; `cursor` where
// its next page begins.
std::string MakePageToken(absl::string_view list, absl::Span<const int64_t> cursor);

// The cursor of a token of that list, which has `size` numbers. INVALID_ARGUMENT
// (PAGE_TOKEN_INVALID) where it is another list's, or none at all.
absl::StatusOr<std::vector<int64_t>> ReadPageToken(absl::string_view list, absl::string_view token,
                                                   size_t size);

// The size of a page: `fallback` for 0, at most `max`. INVALID_ARGUMENT where it is negative.
absl::StatusOr<int> PageSize(int32_t requested, int fallback, int max);

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_PAGE_TOKEN_H_

#include "client/nearest_name.h"

#include <algorithm>
#include <cstddef>

namespace hopscope::client {
namespace {

// Optimal string alignment distance, over three rows of the usual table.
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = last[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string NearestName(absl::string_view typed, const std::vector<std::string>& known) {
  // Longer than any known name could explain; also bounds the work.
  if (typed.size() > 100) return "";
  std::string nearest;
  size_t nearest_distance = 0;
  for (const std::string& name : known) {
    const size_t distance = Distance(typed, name);
    const size_t allowed = std::max<size_t>(1, name.size() / 3);
    if (distance <= allowed && (nearest.empty() || distance < nearest_distance)) {
      nearest = name;
      nearest_distance = distance;
    }
  }
  return nearest;
}

}  // namespace hopscope::client

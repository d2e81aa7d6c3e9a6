#include "client/cli/number_text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hopscope::cli {

std::string Count(int64_t value) {
  const std::string digits = absl::StrCat(value);
  const size_t first = value < 0 ? 1 : 0;
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > first && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string Counted(int64_t value, const std::string& noun) {
  return absl::StrCat(Count(value), " ", noun, value == 1 ? "" : "s");
}

std::string Fixed(double value, int digits) {
  return std::isfinite(value) ? absl::StrFormat("%.*f", digits, value) : "-";
}

std::string Scaled(double value) {
  if (!std::isfinite(value)) return "-";
  const char* const units[] = {"", " k", " M", " G", " T", " P", " E"};
  size_t unit = 0;
  // 999.5 and more would print as 1000.
  while (std::abs(value) >= 999.5 && unit + 1 < std::size(units)) {
    value /= 1000;
    ++unit;
  }
  const double size = std::abs(value);
  const int digits = size >= 99.95 || value == std::round(value) ? 0 : size >= 9.995 ? 1 : 2;
  return absl::StrFormat("%.*f%s", digits, value, units[unit]);
}

std::string ShortDigest(const std::string& digest) { return digest.substr(0, 7 + 8); }

std::string ClockText(absl::Duration duration) {
  if (duration < absl::ZeroDuration() || duration >= absl::Hours(100)) return "-";
  const int64_t seconds = absl::ToInt64Seconds(duration + absl::Milliseconds(500));
  if (seconds >= 3600) {
    return absl::StrFormat("%d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
  }
  return absl::StrFormat("%d:%02d", seconds / 60, seconds % 60);
}

std::string TimeText(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0) return "-";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::FromUnixSeconds(time.seconds()),
                          absl::UTCTimeZone());
}

}  // namespace hopscope::cli

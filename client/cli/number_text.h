// Numbers as people read them on a terminal. For files see client/double_text.h.
#ifndef HOPSCOPE_CLIENT_CLI_NUMBER_TEXT_H_
#define HOPSCOPE_CLIENT_CLI_NUMBER_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "google/protobuf/timestamp.pb.h"

namespace hopscope::cli {

// "1,234,567".
std::string Count(int64_t value);

// "1 cell", "1,200 cells".
std::string Counted(int64_t value, const std::string& noun);

// With so many digits after the point; "-" where it is not finite.
std::string Fixed(double value, int digits);

// Three significant digits and a unit: "2.05 T" for 2.05e12 with the powers of 1,000 (k, M, G, T,
// P, E).
std::string Scaled(double value);

// The first digits of a digest, enough for people: "sha256:0123abcd".
std::string ShortDigest(const std::string& digest);

// "0:07", "12:34", "1:02:03"; "-" for more than 99 hours.
std::string ClockText(absl::Duration duration);

// "2026-01-31 08:15:00 UTC"; "-" where it is not set.
std::string TimeText(const google::protobuf::Timestamp& time);

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_NUMBER_TEXT_H_

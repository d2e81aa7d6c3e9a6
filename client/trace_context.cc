#include "client/trace_context.h"

#include <cstdint>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"

namespace hopscope::client {
namespace {

uint64_t RandomNonZero() {
  absl::BitGen random;
  return absl::Uniform<uint64_t>(absl::IntervalClosedClosed, random, 1, UINT64_MAX);
}

std::string Hex(uint64_t value) { return absl::StrCat(absl::Hex(value, absl::kZeroPad16)); }

}  // namespace

TraceContext::TraceContext()
    : trace_id_(absl::StrCat(Hex(RandomNonZero()), Hex(RandomNonZero()))) {}

std::string TraceContext::NewTraceparent() const {
  // Version 00, and the flag "sampled".
  return absl::StrCat("00-", trace_id_, "-", Hex(RandomNonZero()), "-01");
}

std::string RandomUuid() {
  const uint64_t high = (RandomNonZero() & ~uint64_t{0xf000}) | 0x4000;
  const uint64_t low = (RandomNonZero() & ~(uint64_t{3} << 62)) | uint64_t{1} << 63;
  const std::string digits = absl::StrCat(Hex(high), Hex(low));
  return absl::StrCat(digits.substr(0, 8), "-", digits.substr(8, 4), "-", digits.substr(12, 4), "-",
                      digits.substr(16, 4), "-", digits.substr(20));
}

}  // namespace hopscope::client

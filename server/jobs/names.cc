#include "server/jobs/names.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/spec/text.h"
#include "common/status.h"

namespace hopscope::jobs {
namespace {

constexpr absl::string_view kAlphabet = "0123456789abcdefghjkmnpqrstvwxyz";
constexpr size_t kIdSize = 26;
constexpr absl::string_view kJobPrefix = "jobs/";
constexpr absl::string_view kWorkerPrefix = "workers/";
constexpr size_t kMaxWorkerSuffix = 64;

template <typename Bytes>
void FillRandom(Bytes& bytes) {
  // Up to 256 bytes always come at once when the kernel's pool is ready; before that it blocks.
  while (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
  }
}

bool IsJobId(absl::string_view id) {
  return id.size() == kIdSize && id[0] <= '7' &&  // 130 bits of text hold 128
         std::all_of(id.begin(), id.end(),
                     [](char c) { return kAlphabet.find(c) != absl::string_view::npos; });
}

}  // namespace

std::string NewJobId(absl::Time now) {
  std::array<uint8_t, 16> bytes;
  FillRandom(bytes);
  const int64_t milliseconds = absl::ToUnixMillis(now);
  for (int i = 0; i < 6; ++i) bytes[i] = static_cast<uint8_t>(milliseconds >> (40 - 8 * i));
  // From the last 5 bits to the first.
  std::string id(kIdSize, '0');
  for (size_t digit = 0; digit < kIdSize; ++digit) {
    int value = 0;
    for (size_t bit = 5; bit-- > 0;) {
      const size_t from_end = digit * 5 + bit;
      value <<= 1;
      if (from_end < 128) value |= (bytes[15 - from_end / 8] >> (from_end % 8)) & 1;
    }
    id[kIdSize - 1 - digit] = kAlphabet[value];
  }
  return id;
}

std::string JobName(absl::string_view id) { return absl::StrCat(kJobPrefix, id); }

absl::StatusOr<std::string> ParseJobName(absl::string_view name, absl::string_view field) {
  absl::string_view id = name;
  if (!absl::ConsumePrefix(&id, kJobPrefix) || !IsJobId(id)) {
    return common::InvalidField("NAME_MALFORMED", field, spec::Quoted(name),
                                "a job's name is \"jobs/\" and 26 lower-case letters and digits, "
                                "as CreateEvalJob returns it");
  }
  return std::string(id);
}

absl::Status CheckWorkerId(absl::string_view worker_id, absl::string_view field) {
  absl::string_view suffix = worker_id;
  if (!absl::ConsumePrefix(&suffix, kWorkerPrefix) || suffix.empty() ||
      suffix.size() > kMaxWorkerSuffix || !std::all_of(suffix.begin(), suffix.end(), [](char c) {
        return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
      })) {
    return common::InvalidField(
        "NAME_MALFORMED", field, spec::Quoted(worker_id),
        "a worker's id is \"workers/\" and 1 to 64 letters, digits, '-', '_' or '.'");
  }
  return absl::OkStatus();
}

std::string FormatAttemptId(const AttemptName& attempt) {
  return absl::StrCat(attempt.job_id, "/", attempt.cell, "/", attempt.unit, "/", attempt.number,
                      "/", absl::Hex(attempt.nonce));
}

absl::StatusOr<AttemptName> ParseAttemptId(absl::string_view attempt_id, absl::string_view field) {
  const std::vector<absl::string_view> parts = absl::StrSplit(attempt_id, '/');
  AttemptName attempt;
  if (parts.size() == 5 && IsJobId(parts[0]) && absl::SimpleAtoi(parts[1], &attempt.cell) &&
      absl::SimpleAtoi(parts[2], &attempt.unit) && absl::SimpleAtoi(parts[3], &attempt.number) &&
      absl::SimpleHexAtoi(parts[4], &attempt.nonce)) {
    attempt.job_id = std::string(parts[0]);
    // Only one spelling names an attempt.
    if (FormatAttemptId(attempt) == attempt_id) return attempt;
  }
  return common::InvalidField("NAME_MALFORMED", field, spec::Quoted(attempt_id),
                              "an attempt's id is what LeaseUnits returned");
}

int64_t RandomNonce() {
  std::array<uint8_t, 8> bytes;
  FillRandom(bytes);
  int64_t nonce = 0;
  for (const uint8_t byte : bytes) nonce = (nonce & 0x7fffffffffffff) << 8 | byte;
  return nonce;
}

}  // namespace hopscope::jobs

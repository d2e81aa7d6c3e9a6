// Names of jobs, workers and attempts: how they are made, and what they must look like.
//
// Pure functions but for NewJobId; thread-safe.
#ifndef HOPSCOPE_SERVER_JOBS_NAMES_H_
#define HOPSCOPE_SERVER_JOBS_NAMES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hopscope::jobs {

// A new job id: 26 characters of Crockford's base 32 in lower case, 48 bits of milliseconds since
// 1970 and 80 random bits of the kernel. Ids sort by time, and nobody guesses one.
std::string NewJobId(absl::Time now);

// "jobs/{id}".
std::string JobName(absl::string_view id);

// The id of a job's name. INVALID_ARGUMENT naming the field where it is no such name.
absl::StatusOr<std::string> ParseJobName(absl::string_view name, absl::string_view field = "name");

// INVALID_ARGUMENT unless it is "workers/" and 1 to 64 letters, digits, '-', '_' or '.'.
absl::Status CheckWorkerId(absl::string_view worker_id, absl::string_view field = "worker_id");

// What an attempt id says: it is "JOB_ID/CELL/UNIT/NUMBER/NONCE", with the nonce in hexadecimal.
struct AttemptName {
  std::string job_id;
  int32_t cell = 0;
  int64_t unit = 0;
  int32_t number = 0;
  int64_t nonce = 0;
};
std::string FormatAttemptId(const AttemptName& attempt);
absl::StatusOr<AttemptName> ParseAttemptId(absl::string_view attempt_id,
                                           absl::string_view field = "attempt_id");

// 63 random bits of the kernel.
int64_t RandomNonce();

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_NAMES_H_

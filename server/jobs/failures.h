// Why attempts, units, cells and jobs fail: the reasons that there are.
#ifndef HOPSCOPE_SERVER_JOBS_FAILURES_H_
#define HOPSCOPE_SERVER_JOBS_FAILURES_H_

#include "absl/strings/string_view.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::jobs {

inline constexpr absl::string_view kWorkerLost = "WORKER_LOST";
inline constexpr absl::string_view kTimeout = "TIMEOUT";
inline constexpr absl::string_view kOutOfMemory = "OUT_OF_MEMORY";
inline constexpr absl::string_view kCheckpoint = "CHECKPOINT";
inline constexpr absl::string_view kInternal = "INTERNAL";
inline constexpr absl::string_view kPreempted = "PREEMPTED";  // does not count as an attempt
// Of cells whose every item failed, and of jobs; not of attempts.
inline constexpr absl::string_view kNumeric = "NUMERIC";
inline constexpr absl::string_view kDeadline = "DEADLINE";

// A failure whose message is valid UTF-8 of at most 1,024 bytes.
v1::Failure MakeFailure(absl::string_view reason, absl::string_view message);

// What a worker reported, with a reason that attempts can have: any other becomes INTERNAL, and is
// named in the message.
v1::Failure BoundAttemptFailure(const v1::Failure& reported);

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_FAILURES_H_

// Follows a job to its end.
#ifndef HOPSCOPE_CLIENT_CLI_FOLLOW_JOB_H_
#define HOPSCOPE_CLIENT_CLI_FOLLOW_JOB_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/command_interrupts.h"
#include "client/cli/console.h"
#include "client/cli/progress_view.h"
#include "client/client.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::cli {

struct FollowOptions {
  // Only events after this one are shown; 0: all.
  int64_t after_sequence = 0;
  // The first interrupt cancels the job, and its end is waited for.
  bool cancel_job_on_interrupt = false;
  // How often the view is told that time passes.
  absl::Duration tick = absl::Seconds(1);
  // How often a job that waits is asked why.
  absl::Duration ask_why_waiting = absl::Seconds(5);
};

// Shows the events of a job until it has ended, and returns its last state. Errors: of the
// connection; CANCELLED after the interrupt that leaves, OutputLostError where the view can be
// shown no more.
absl::StatusOr<v1::EvalJob::State> FollowJob(const client::Client& client, const v1::EvalJob& job,
                                             ProgressView& view, Console& console,
                                             CommandInterrupts& interrupts,
                                             const FollowOptions& options);

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_FOLLOW_JOB_H_

// Shows a job's events as they come: as a bar on a terminal, as lines in a log, or as JSON.
#ifndef HOPSCOPE_CLIENT_CLI_PROGRESS_VIEW_H_
#define HOPSCOPE_CLIENT_CLI_PROGRESS_VIEW_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "client/cli/console.h"
#include "client/cli/job_tally.h"
#include "common/clock.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::cli {

// Calls come from one thread at a time.
class ProgressView {
 public:
  virtual ~ProgressView() = default;

  // Before the first event. `after_sequence`: as the watch was opened with.
  virtual void Begin(const v1::EvalJob& job, int64_t after_sequence) = 0;
  // False where nobody reads what is shown any more.
  virtual bool Show(const v1::EvalEvent& event) = 0;
  // Now and then, about once a second, while no events come.
  virtual void Tick() = 0;
  // Why the job waits; an empty reason is not shown.
  virtual void ShowWaiting(const std::string& reason) = 0;
  // After the last event, also where the watch was left early.
  virtual void End() = 0;
};

// Redrawn at most ten times a second; what failed or was lost is a line above it. `clock` and
// `console` must outlive the view, here and below.
std::unique_ptr<ProgressView> MakeProgressBar(Console* console, const common::Clock* clock);

// A line for each cell that ends, and one on the whole job at most every `interval`. To standard
// error.
std::unique_ptr<ProgressView> MakeProgressLines(Console* console, const common::Clock* clock,
                                                absl::Duration interval = absl::Seconds(5));

// Each event as one line of JSON on standard output.
std::unique_ptr<ProgressView> MakeProgressJson(Console* console);

// The line of the bar, at most `columns` wide: what is less important is left out where there is no
// room.
std::string ProgressBarText(const JobTally& tally, absl::Duration elapsed, int columns);

// What a line about an event says; empty for events that only move the bar. `tally` has taken the
// event in.
std::string EventText(const v1::EvalEvent& event, const JobTally& tally);

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_PROGRESS_VIEW_H_

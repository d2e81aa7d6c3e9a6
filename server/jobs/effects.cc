#include "server/jobs/effects.h"

#include <optional>

namespace hopscope::jobs {

void Effects::Reset() {
  work_ = false;
  workers_.clear();
  jobs_.clear();
  ended_.clear();
  live_.clear();
  progress_events_.clear();
  observations_.clear();
}

void Effects::Raise() {
  if (observer_ != nullptr) {
    for (const auto& observation : observations_) observation(*observer_);
  }
  // Live events first: after JobFinished, a watcher is gone.
  for (const v1::EvalEvent& event : live_) signals_.RaiseJob(event.job(), &event);
  for (ProgressEvent& progress : progress_events_) {
    v1::EvalEvent& event = progress.event;
    const std::optional<double> rate = progress_.Record(event.job(), progress.start, progress.now,
                                                        event.cell_progress().job_items_done());
    if (!rate.has_value()) continue;
    event.mutable_cell_progress()->set_items_per_second(*rate);
    signals_.RaiseJob(event.job(), &event);
  }
  for (const std::string& job : ended_) progress_.Forget(job);
  for (const std::string& job : jobs_) signals_.RaiseJob(job);
  for (const std::string& worker : workers_) signals_.RaiseWorker(worker);
  if (work_) signals_.RaiseWork();
  Reset();
}

}  // namespace hopscope::jobs

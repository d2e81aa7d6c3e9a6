// What a transaction wants told once it is durable: signals, live events and observations. Its body
// fills this in anew each time it runs; the caller raises it after the commit.
//
// Used by one thread at a time.
#ifndef HOPSCOPE_SERVER_JOBS_EFFECTS_H_
#define HOPSCOPE_SERVER_JOBS_EFFECTS_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "hopscope/v1/evaluation.pb.h"
#include "server/jobs/job_observer.h"
#include "server/jobs/progress_meter.h"
#include "server/jobs/signals.h"

namespace hopscope::jobs {

class Effects {
 public:
  // `observer` may be null. All must outlive the effects.
  Effects(Signals* signals, ProgressMeter* progress, JobObserver* observer)
      : signals_(*signals), progress_(*progress), observer_(observer) {}

  // Forgets everything: the first thing that a body does.
  void Reset();

  // Units may have become leasable.
  void WorkAppeared() { work_ = true; }
  // The worker's heartbeat has something to say.
  void WorkerHasNews(absl::string_view worker) { workers_.emplace(worker); }
  // The job has new durable events.
  void JobHasEvents(absl::string_view job) { jobs_.emplace(job); }
  void JobEnded(absl::string_view job) { ended_.emplace(job); }
  // Whether somebody would hear a live event of the job.
  bool IsWatched(absl::string_view job) const { return signals_.JobHasListeners(job); }
  void Live(v1::EvalEvent event) { live_.push_back(std::move(event)); }
  // A CellProgress event, told where one is due. Its items_per_second is filled in later.
  void Progress(v1::EvalEvent event, absl::Time start, absl::Time now) {
    progress_events_.push_back({std::move(event), start, now});
  }
  void Observe(std::function<void(JobObserver&)> observation) {
    if (observer_ != nullptr) observations_.push_back(std::move(observation));
  }

  // Tells all of it.
  void Raise();

 private:
  struct ProgressEvent {
    v1::EvalEvent event;
    absl::Time start;
    absl::Time now;
  };

  Signals& signals_;
  ProgressMeter& progress_;
  JobObserver* const observer_;
  bool work_ = false;
  std::set<std::string> workers_;
  std::set<std::string> jobs_;
  std::set<std::string> ended_;
  std::vector<v1::EvalEvent> live_;
  std::vector<ProgressEvent> progress_events_;
  std::vector<std::function<void(JobObserver&)>> observations_;
};

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_EFFECTS_H_

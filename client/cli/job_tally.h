// How far a job is, told from its events.
#ifndef HOPSCOPE_CLIENT_CLI_JOB_TALLY_H_
#define HOPSCOPE_CLIENT_CLI_JOB_TALLY_H_

#include <cstdint>
#include <set>

#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::cli {

// Starts from the job as it was read, and takes in its events. Not thread-safe.
class JobTally {
 public:
  JobTally() = default;
  // `replayed`: events from the first on will follow, so that what they count starts from 0.
  JobTally(const v1::EvalJob& job, bool replayed);

  void Add(const v1::EvalEvent& event);

  v1::EvalJob::State state() const { return state_; }
  int64_t cells() const { return cells_; }
  // Completed or failed.
  int64_t cells_ended() const { return cells_completed_ + cells_failed_; }
  int64_t cells_failed() const { return cells_failed_; }
  int64_t items() const { return items_; }
  int64_t items_done() const { return items_done_; }
  // Over the last seconds, as the server measured it; 0: not known yet.
  double items_per_second() const { return items_per_second_; }
  // Whether cells need their seed to be told apart.
  bool several_seeds() const { return several_seeds_; }
  int64_t workers_lost() const { return workers_lost_; }
  int64_t attempts_failed() const { return attempts_failed_; }

 private:
  v1::EvalJob::State state_ = v1::EvalJob::STATE_UNSPECIFIED;
  int64_t cells_ = 0;
  int64_t cells_completed_ = 0;
  int64_t cells_failed_ = 0;
  int64_t items_ = 0;
  int64_t items_done_ = 0;
  int64_t items_of_ended_cells_ = 0;
  double items_per_second_ = 0;
  int64_t workers_lost_ = 0;
  int64_t attempts_failed_ = 0;
  bool several_seeds_ = false;
};

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_JOB_TALLY_H_

// Hands outcomes in, one after the other on a thread of its own, so that computing never waits for
// the server.
//
// Contract
// 1. An outcome is sent, part by part, until the server has taken it or says that the attempt is
//    gone (DUPLICATE, SUPERSEDED, NOT_FOUND). Then `on_end` is called with the attempt's id.
// 2. While the server cannot be reached or cannot store, the same outcome is tried again with
//    backoff, for ever.
// 3. An outcome that the server refuses for another reason goes behind the others and is tried
//    max_refusals times in all; then a result is replaced by a failure with reason INTERNAL that
//    says so, which makes the unit run again or end; what is refused even then is given up.
// 4. `full` bounds the backlog: the caller leases nothing while it is full, so the backlog stays
//    below the bound plus what the worker holds.
//
// Thread-safe. `on_end` is called on the reporter's thread, without a lock held.
#ifndef HOPSCOPE_WORKER_LINK_REPORTER_H_
#define HOPSCOPE_WORKER_LINK_REPORTER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "worker/link/backoff.h"
#include "worker/link/dispatch_stub.h"
#include "worker/link/doorbell.h"
#include "worker/link/outage_log.h"
#include "worker/link/unit_outcome.h"

namespace hopscope::link {

class Reporter {
 public:
  struct Options {
    std::string worker_id;
    // Bytes of a result in one message; leaves room below 1 MiB for the rest of the message.
    int64_t max_part_bytes = 1000 * 1000;
    // Deadline of a call.
    absl::Duration call_timeout = absl::Seconds(30);
    Backoff::Options backoff;
    // Seed of the backoff's jitter.
    uint64_t seed = 0;
    // Refusals of an outcome before it is replaced or given up; at least 1.
    int max_refusals = 5;
    // The backlog is full at so many outcomes, or so many bytes.
    int max_backlog = 256;
    int64_t max_backlog_bytes = 64 << 20;
  };

  using OnEnd = std::function<void(const std::string& attempt_id)>;

  // The pointers must outlive the reporter. Starts its thread.
  Reporter(Options options, DispatchStub* stub, const common::Clock* clock, OnEnd on_end);
  // Stops.
  ~Reporter();

  void Submit(UnitOutcome outcome);

  // Outcomes that the server has not taken yet, the one being sent included.
  int backlog() const;
  bool full() const;

  // The server answers again: ends a backoff.
  void TryNow();

  // Until the backlog is empty, or the deadline (system time); true where it is empty.
  bool WaitUntilEmpty(absl::Time deadline) const;

  // Ends the call in progress and gives the backlog up. Blocks until the thread has ended.
  void Stop();

 private:
  struct Pending {
    UnitOutcome outcome;
    int64_t bytes = 0;  // of the outcome as submitted
    int next_part = 0;
    int refusals = 0;
  };
  enum class Sent { kEnded, kUnreachable, kRefused };

  void Loop();
  // Sends the parts of `pending` from next_part on.
  Sent Send(Pending* pending);
  // Counts a refusal of `pending`, and replaces what was refused too often.
  Sent Refuse(Pending* pending, const absl::Status& error);
  absl::StatusOr<v1::ReportUnitResponse> SendPart(const Pending& pending);

  const Options options_;
  DispatchStub* const stub_;
  const OnEnd on_end_;
  OutageLog outages_;  // the thread's alone
  Doorbell retry_;

  mutable common::Mutex mutex_;
  mutable common::CondVar changed_;
  // Only the thread removes or moves elements, so it may use the front one without the lock.
  std::deque<Pending> backlog_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;  // within on_end_
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Call* call_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_REPORTER_H_

// Asks the server for units whenever the worker wants some: long polls, one after the other, on a
// thread of its own.
//
// Thread-safe. Wish and listener are called on the leaser's thread, without a lock held.
#ifndef HOPSCOPE_WORKER_LINK_LEASER_H_
#define HOPSCOPE_WORKER_LINK_LEASER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "hopscope/v1/dispatch.pb.h"
#include "worker/link/backoff.h"
#include "worker/link/dispatch_stub.h"
#include "worker/link/doorbell.h"
#include "worker/link/outage_log.h"

namespace hopscope::link {

class Leaser {
 public:
  struct Options {
    std::string worker_id;
    // How long the server may wait for a unit.
    absl::Duration wait = absl::Seconds(10);
    // Time to answer beyond that.
    absl::Duration call_timeout = absl::Seconds(10);
    // Least time from one poll's beginning to the next after an empty answer: a server that cannot
    // wait is not asked in a tight loop.
    absl::Duration min_spacing = absl::Milliseconds(100);
    // On Stop, a poll gets so long before it is cancelled. The server takes back what it leased to
    // a call that was cancelled, but not what is on its way as the call ends; by the end of this
    // time it knows that the worker drains.
    absl::Duration patience = absl::Milliseconds(500);
    Backoff::Options backoff;
    // Seed of the backoff's jitter.
    uint64_t seed = 0;
  };

  // Implemented by the loop that the leaser serves.
  class Listener {
   public:
    virtual ~Listener() = default;
    // Units to ask for now; 0: none until Changed() is called.
    virtual int WantedUnits() = 0;
    // Digests of the checkpoints that are loaded, most recently used first.
    virtual std::vector<std::string> LoadedDigests() = 0;
    virtual void OnLeases(google::protobuf::RepeatedPtrField<v1::UnitLease> leases) = 0;
    // The server does not know the worker.
    virtual void OnForgotten() = 0;
  };

  // The pointers must outlive the leaser.
  Leaser(Options options, DispatchStub* stub, const common::Clock* clock, Listener* listener);
  // Stops.
  ~Leaser();

  void Start();

  // WantedUnits may have become another.
  void Changed();

  // Asks for nothing more. Blocks until the thread has ended, for about `patience`; leases that
  // still come are passed on.
  void Stop();

 private:
  void Loop();
  // One call; returns how long to wait before the next.
  absl::Duration Lease(int units);

  const Options options_;
  DispatchStub* const stub_;
  const common::Clock* const clock_;
  Listener* const listener_;
  Doorbell changed_;
  Doorbell stop_;

  // The thread's alone.
  OutageLog outages_;
  Backoff backoff_;

  mutable common::Mutex mutex_;
  common::CondVar ended_changed_;
  Call* call_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = true;
  std::thread thread_;
};

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_LEASER_H_

// The worker's standing with the server: registers, renews leases with heartbeats, and passes on
// what the server wishes. Runs on a thread of its own.
//
// Contract
// 1. Registers first, and again whenever the server does not know the worker (NOT_FOUND). While the
//    server cannot be reached it tries with backoff, for ever; what is held goes on meanwhile,
//    since the server decides about leases.
// 2. A registration that the server refuses (FAILED_PRECONDITION: other major version;
//    INVALID_ARGUMENT) ends the session: `on_refused` is called, and nothing after it.
// 3. Heartbeats are long polls, at least one in the interval that the server asks for. Poll()
//    begins a new one at once, so that the server knows of new attempts and can cancel them; two
//    never begin within min_spacing.
//
// Thread-safe. The listener is called on the session's thread, without a lock held.
#ifndef HOPSCOPE_WORKER_LINK_SESSION_H_
#define HOPSCOPE_WORKER_LINK_SESSION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "hopscope/v1/dispatch.pb.h"
#include "worker/link/backoff.h"
#include "worker/link/dispatch_stub.h"
#include "worker/link/doorbell.h"
#include "worker/link/outage_log.h"

namespace hopscope::link {

class Session {
 public:
  struct Options {
    std::string worker_id;
    v1::WorkerDescription description;
    // Time to answer a call, beyond what the call itself waits for.
    absl::Duration call_timeout = absl::Seconds(10);
    // Least time between the beginnings of two heartbeats.
    absl::Duration min_spacing = absl::Milliseconds(200);
    Backoff::Options backoff;
    // Seed of the backoff's jitter.
    uint64_t seed = 0;
  };

  // Implemented by the loop that the session serves.
  class Listener {
   public:
    virtual ~Listener() = default;
    // Attempts to renew.
    virtual std::vector<std::string> HeldAttempts() = 0;
    // The server has cancelled attempts; may name ones that are no longer held.
    virtual void OnCancelled(
        const google::protobuf::RepeatedPtrField<std::string>& attempt_ids) = 0;
    // The server's drain wish has changed.
    virtual void OnDrain(bool drain) = 0;
    // `connected` has become another.
    virtual void OnConnection(bool connected) = 0;
    virtual void OnRefused(absl::Status error) = 0;
  };

  // The pointers must outlive the session.
  Session(Options options, DispatchStub* stub, const common::Clock* clock, Listener* listener);
  // Stops.
  ~Session();

  void Start();

  // Begins a new heartbeat soon.
  void Poll();

  // A call was answered with NOT_FOUND: registers again.
  void Forgotten();

  // From now on heartbeats say that the worker leases nothing more; the next one begins soon.
  void AnnounceDraining();

  // True where the worker is registered and the last call was answered.
  bool connected() const;

  // How long ago the thread last began a call; above MaxStep() it hangs.
  absl::Duration SinceStep() const;
  absl::Duration MaxStep() const;

  // Ends the call in progress. Blocks until the thread has ended.
  void Stop();

  // After Stop: tells a server that still answers that nothing is held any more, so that it need
  // not wait for the leases to end. Best effort, within call_timeout.
  void SayGoodbye();

 private:
  void Loop();
  // One call each; return how long to wait before the next.
  absl::Duration Register();
  absl::Duration Beat();
  absl::Duration Fail(const absl::Status& error);
  void SetConnected(bool connected);
  // Makes `call` the one that Stop ends, and Poll too where it is a long poll; it is ended already
  // where one of them came since `polls` was read.
  void Begin(Call* call, bool long_poll, uint64_t polls);
  void End();

  const Options options_;
  DispatchStub* const stub_;
  const common::Clock* const clock_;
  Listener* const listener_;
  Doorbell stop_;

  // The thread's alone.
  OutageLog outages_;
  Backoff backoff_;
  uint64_t answered_polls_ = 0;
  bool refused_ = false;

  mutable common::Mutex mutex_;
  Call* call_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool call_is_long_poll_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t polls_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool registered_ ABSL_GUARDED_BY(mutex_) = false;
  bool connected_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool known_drain_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time last_step_ ABSL_GUARDED_BY(mutex_);
  absl::Duration interval_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(1);
  std::thread thread_;
};

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_SESSION_H_

// A unary call that waits for news without holding a thread: it tries, and where there is nothing
// yet, tries again whenever it is woken, until its time is up.
//
// Contract
// 1. The caller subscribes Wake() to its news before Start(), so that none falls between the first
// try and the waiting.
// 2. At most one try runs at once, on a lane of the executor. News during a try lead to another one
// after it.
// 3. The call ends exactly once: with what a try says; OK with the response of the last try when
// its time is up, but not
//    before one try was made; with CANCELLED when the client is gone; with the given status on
//    End().
// 4. The object owns itself from Start() until gRPC is done with it.
// Thread-safe.
#ifndef HOPSCOPE_SERVER_RPC_LONG_POLL_H_
#define HOPSCOPE_SERVER_RPC_LONG_POLL_H_

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "grpcpp/support/server_callback.h"
#include "server/jobs/signals.h"
#include "server/rpc/call_record.h"
#include "server/rpc/open_calls.h"
#include "server/rpc/runtime.h"

namespace hopscope::rpc {

class LongPoll : public grpc::ServerUnaryReactor,
                 public OpenCall,
                 public std::enable_shared_from_this<LongPoll> {
 public:
  // Does the work, fills the response, and says whether it is worth answering now. Blocks; runs on
  // the executor. Is not called any more once the call has ended.
  using Try = std::function<absl::StatusOr<bool>()>;
  // Where the client was gone when a try had something to answer: takes it back. Blocks; runs on
  // the executor.
  using Undo = std::function<void()>;
  // Subscribes a callback to the news that the call waits for.
  using Subscribe =
      std::function<std::unique_ptr<jobs::Signals::Subscription>(std::function<void()>)>;

  // The runtime and the lane must outlive the call.
  LongPoll(Runtime* runtime, ExecutorLane* lane, const CallRecord& record, Try try_once, Undo undo);

  // Begins. Waits for at most `wait`; zero: answers with the first try.
  void Start(absl::Duration wait, const Subscribe& subscribe);

  void End(const absl::Status& status) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  enum class State { kWaiting, kQueued, kTrying, kEnded };

  void Wake();
  void TimeIsUp();
  void RunTry();
  void QueueTry() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishOnce(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Runtime* const runtime_;
  ExecutorLane* const lane_;
  const CallRecord record_;

  common::Mutex mutex_;
  Try try_once_ ABSL_GUARDED_BY(mutex_);
  Undo undo_ ABSL_GUARDED_BY(mutex_);
  State state_ ABSL_GUARDED_BY(mutex_) = State::kWaiting;
  bool tried_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;                    // during the try that runs
  bool time_is_up_ ABSL_GUARDED_BY(mutex_) = false;               // noted while it could not end
  std::optional<absl::Status> end_with_ ABSL_GUARDED_BY(mutex_);  // noted during the try that runs
  std::unique_ptr<jobs::Signals::Subscription> subscription_ ABSL_GUARDED_BY(mutex_);
  std::optional<Timer::Id> timer_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<LongPoll> self_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hopscope::rpc

#endif  // HOPSCOPE_SERVER_RPC_LONG_POLL_H_

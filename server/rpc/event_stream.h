// The stream of WatchEvalJob: a job's stored events page by page, then new ones as they come.
//
// Contract
// 1. The next page is read when the last one has been written, and one write is in flight at a
// time: a slow reader costs
//    one page of memory, however many events wait for it.
// 2. Durable events come in order, each once. Live events come in between while nothing durable
// waits; of those that
//    come too fast, only the newest are kept.
// 3. It listens to the job before its first read, so that no event falls in between.
// 4. It ends exactly once: OK after JobFinished, or at once where that was seen before; with an
// error of the store; with
//    CANCELLED when the client is gone; with the given status on End().
// 5. The object owns itself from Start() until gRPC is done with it.
// Thread-safe.
#ifndef HOPSCOPE_SERVER_RPC_EVENT_STREAM_H_
#define HOPSCOPE_SERVER_RPC_EVENT_STREAM_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "common/mutex.h"
#include "grpcpp/support/server_callback.h"
#include "hopscope/v1/evaluation.pb.h"
#include "server/jobs/job_service.h"
#include "server/jobs/signals.h"
#include "server/rpc/call_record.h"
#include "server/rpc/open_calls.h"
#include "server/rpc/runtime.h"

namespace hopscope::rpc {

class EventStream : public grpc::ServerWriteReactor<v1::WatchEvalJobResponse>,
                    public OpenCall,
                    public std::enable_shared_from_this<EventStream> {
 public:
  // Most of what one page holds.
  static constexpr int kPageEvents = 256;
  static constexpr int64_t kPageBytes = 256 << 10;
  // Live UnitStarted events that wait.
  static constexpr size_t kMaxUnitsStarted = 8;

  // All pointers must outlive the stream.
  EventStream(Runtime* runtime, jobs::JobService* jobs, jobs::Signals* signals,
              const CallRecord& record, const v1::WatchEvalJobRequest& request);

  void Start();

  void End(const absl::Status& status) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  struct Page {
    std::deque<v1::EvalEvent> events;
    bool finished = false;     // nothing comes after it
    bool may_be_full = false;  // something may
  };

  void OnNews(const v1::EvalEvent* live);
  // Does what comes next, where nothing is under way.
  void Continue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Write(v1::EvalEvent event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishOnce(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReadNextPage(int64_t after_sequence);
  absl::StatusOr<Page> ReadPage(int64_t after_sequence) const;

  Runtime* const runtime_;
  jobs::JobService* const jobs_;
  jobs::Signals* const signals_;
  const CallRecord record_;
  const std::string job_;

  common::Mutex mutex_;
  int64_t sequence_
      ABSL_GUARDED_BY(mutex_);  // of the newest durable event that was written or is in the page
  Page page_ ABSL_GUARDED_BY(mutex_);
  bool unread_ ABSL_GUARDED_BY(mutex_) = true;  // there may be events behind the page
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> end_with_ ABSL_GUARDED_BY(mutex_);
  std::deque<v1::EvalEvent> units_started_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::EvalEvent> progress_ ABSL_GUARDED_BY(mutex_);
  v1::WatchEvalJobResponse in_flight_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<jobs::Signals::Subscription> subscription_ ABSL_GUARDED_BY(mutex_);
  bool counted_ ABSL_GUARDED_BY(mutex_) = false;  // in the gauge of watchers
  std::shared_ptr<EventStream> self_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hopscope::rpc

#endif  // HOPSCOPE_SERVER_RPC_EVENT_STREAM_H_

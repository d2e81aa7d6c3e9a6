// In-process news: "there may be work", "this worker has news", "this job has new events". Signals
// carry no state: who hears one looks into the store. Several server replicas relay them through
// the store's own notifications.
//
// Callbacks run on the thread that raised the signal and must not block, nor call back into
// Signals. After a Subscription is destroyed its callback is not running and will not run again.
// Thread-safe.
#ifndef HOPSCOPE_SERVER_JOBS_SIGNALS_H_
#define HOPSCOPE_SERVER_JOBS_SIGNALS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::jobs {

class Signals {
 public:
  class Subscription {
   public:
    virtual ~Subscription() = default;
  };

  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Units may have become leasable.
  std::unique_ptr<Subscription> OnWork(std::function<void()> callback);
  void RaiseWork();

  // A worker's heartbeat should be answered: something of its was cancelled, or its drain wish
  // changed.
  std::unique_ptr<Subscription> OnWorker(absl::string_view worker_id,
                                         std::function<void()> callback);
  void RaiseWorker(absl::string_view worker_id);

  // A job has new durable events (`live` is null), or a live one that is not stored (`live` holds
  // it).
  using JobCallback = std::function<void(const v1::EvalEvent* live)>;
  std::unique_ptr<Subscription> OnJob(absl::string_view job, JobCallback callback);
  void RaiseJob(absl::string_view job, const v1::EvalEvent* live = nullptr);
  // True where somebody listens to the job; spares making live events for nobody.
  bool JobHasListeners(absl::string_view job) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_SIGNALS_H_

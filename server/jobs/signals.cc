#include "server/jobs/signals.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "common/mutex.h"

namespace hopscope::jobs {
namespace {

// One callback. Its own mutex, held while it runs, makes the end of a subscription wait for it,
// without making subscriptions wait for each other.
struct Listener {
  explicit Listener(Signals::JobCallback callback) : callback(std::move(callback)) {}

  void Call(const v1::EvalEvent* live) {
    common::MutexLock lock(&mutex);
    if (alive) callback(live);
  }
  void End() {
    common::MutexLock lock(&mutex);
    alive = false;
  }

  common::Mutex mutex;
  bool alive ABSL_GUARDED_BY(mutex) = true;
  const Signals::JobCallback callback;
};

}  // namespace

struct Signals::Impl {
  // Listeners in the order in which they subscribed.
  using Listeners = std::map<int64_t, std::shared_ptr<Listener>>;
  // Keys: "work", a worker's id, or a job's name, which no two of them share.
  using Topics = absl::flat_hash_map<std::string, Listeners>;

  class Topic : public Subscription {
   public:
    Topic(std::shared_ptr<Impl> impl, std::string topic, JobCallback callback)
        : impl_(std::move(impl)),
          topic_(std::move(topic)),
          listener_(std::make_shared<Listener>(std::move(callback))) {
      common::MutexLock lock(&impl_->mutex);
      number_ = impl_->next_number++;
      impl_->topics[topic_].emplace(number_, listener_);
    }
    ~Topic() override {
      {
        common::MutexLock lock(&impl_->mutex);
        const auto found = impl_->topics.find(topic_);
        found->second.erase(number_);
        if (found->second.empty()) impl_->topics.erase(found);
      }
      listener_->End();
    }

   private:
    const std::shared_ptr<Impl> impl_;
    const std::string topic_;
    const std::shared_ptr<Listener> listener_;
    int64_t number_ = 0;
  };

  void Raise(absl::string_view topic, const v1::EvalEvent* live) {
    std::vector<std::shared_ptr<Listener>> listeners;
    {
      common::MutexLock lock(&mutex);
      const auto found = topics.find(topic);
      if (found == topics.end()) return;
      listeners.reserve(found->second.size());
      for (const auto& [number, listener] : found->second) listeners.push_back(listener);
    }
    for (const auto& listener : listeners) listener->Call(live);
  }

  mutable common::Mutex mutex;
  Topics topics ABSL_GUARDED_BY(mutex);
  int64_t next_number ABSL_GUARDED_BY(mutex) = 0;
};

namespace {

constexpr absl::string_view kWork = "work";

Signals::JobCallback WithoutEvent(std::function<void()> callback) {
  return [callback = std::move(callback)](const v1::EvalEvent*) { callback(); };
}

}  // namespace

Signals::Signals() : impl_(std::make_shared<Impl>()) {}
Signals::~Signals() = default;

std::unique_ptr<Signals::Subscription> Signals::OnWork(std::function<void()> callback) {
  return std::make_unique<Impl::Topic>(impl_, std::string(kWork),
                                       WithoutEvent(std::move(callback)));
}

void Signals::RaiseWork() { impl_->Raise(kWork, nullptr); }

std::unique_ptr<Signals::Subscription> Signals::OnWorker(absl::string_view worker_id,
                                                         std::function<void()> callback) {
  return std::make_unique<Impl::Topic>(impl_, std::string(worker_id),
                                       WithoutEvent(std::move(callback)));
}

void Signals::RaiseWorker(absl::string_view worker_id) { impl_->Raise(worker_id, nullptr); }

std::unique_ptr<Signals::Subscription> Signals::OnJob(absl::string_view job, JobCallback callback) {
  return std::make_unique<Impl::Topic>(impl_, std::string(job), std::move(callback));
}

void Signals::RaiseJob(absl::string_view job, const v1::EvalEvent* live) {
  impl_->Raise(job, live);
}

bool Signals::JobHasListeners(absl::string_view job) const {
  common::MutexLock lock(&impl_->mutex);
  return impl_->topics.contains(job);
}

}  // namespace hopscope::jobs

// Whether the server can serve: what gRPC health checks and /readyz say.
#ifndef HOPSCOPE_SERVER_HEALTH_H_
#define HOPSCOPE_SERVER_HEALTH_H_

#include <functional>

#include "absl/status/status.h"
#include "common/mutex.h"

namespace hopscope::server {

// Serving = started, the store is usable, and not draining. Thread-safe.
class Health {
 public:
  // Hears each change between serving and not serving; must not block, nor call back.
  using Listener = std::function<void(bool serving)>;

  // From here on the server answers calls; `listener` is called at once.
  void Start(Listener listener);
  // What a probe of the store found; changes are logged. One that works counts only where nothing
  // failed since the probe before it: on a full disk there may be room for a probe alone.
  void SetStore(const absl::Status& status);
  // An operation failed because of the store: it is not usable from now on.
  void StoreFailed(const absl::Status& status);
  // The server stops: it will not serve again.
  void Drain();

  // OK, or why not: UNAVAILABLE, or what is wrong with the store.
  absl::Status Check() const;

 private:
  absl::Status CheckLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ChangeStore(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable common::Mutex mutex_;
  Listener listener_ ABSL_GUARDED_BY(mutex_);
  bool told_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status store_ ABSL_GUARDED_BY(mutex_);
  bool failed_since_probe_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hopscope::server

#endif  // HOPSCOPE_SERVER_HEALTH_H_

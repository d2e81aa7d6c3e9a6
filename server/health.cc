#include "server/health.h"

#include <utility>

#include "common/logging.h"
#include "common/status.h"

namespace hopscope::server {

void Health::Start(Listener listener) {
  common::MutexLock lock(&mutex_);
  listener_ = std::move(listener);
  told_ = CheckLocked().ok();
  listener_(told_);
}

void Health::SetStore(const absl::Status& status) {
  common::MutexLock lock(&mutex_);
  if (std::exchange(failed_since_probe_, false) && status.ok()) return;
  ChangeStore(status);
}

void Health::StoreFailed(const absl::Status& status) {
  common::MutexLock lock(&mutex_);
  failed_since_probe_ = true;
  ChangeStore(status);
}

void Health::ChangeStore(const absl::Status& status) {
  if (!status.ok() && store_.ok()) {
    common::Log(spdlog::level::err, "store not usable",
                {{"reason", common::ErrorReason(status)}, {"error", status}});
  } else if (status.ok() && !store_.ok()) {
    common::Log(spdlog::level::info, "store usable again");
  }
  store_ = status;
  Tell();
}

void Health::Drain() {
  common::MutexLock lock(&mutex_);
  draining_ = true;
  Tell();
}

absl::Status Health::Check() const {
  common::MutexLock lock(&mutex_);
  return CheckLocked();
}

absl::Status Health::CheckLocked() const {
  if (draining_) return absl::UnavailableError("shutting down");
  if (!listener_) return absl::UnavailableError("starting");
  return store_;
}

void Health::Tell() {
  const bool serving = CheckLocked().ok();
  if (!listener_ || serving == told_) return;
  told_ = serving;
  listener_(serving);
}

}  // namespace hopscope::server

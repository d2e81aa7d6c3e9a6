#include "server/rpc/open_calls.h"

#include <utility>
#include <vector>

namespace hopscope::rpc {

OpenCalls::~OpenCalls() {
  // gRPC orders this after the last Remove(), but by means that ThreadSanitizer does not see; the
  // lock says so too.
  common::MutexLock lock(&mutex_);
}

bool OpenCalls::Add(const std::shared_ptr<OpenCall>& call) {
  common::MutexLock lock(&mutex_);
  if (draining_) return false;
  calls_.emplace(call.get(), call);
  return true;
}

void OpenCalls::Remove(const OpenCall* call) {
  common::MutexLock lock(&mutex_);
  calls_.erase(call);
}

void OpenCalls::EndAll(const absl::Status& status) {
  std::vector<std::shared_ptr<OpenCall>> calls;
  {
    common::MutexLock lock(&mutex_);
    draining_ = true;
    for (const auto& [key, call] : calls_) {
      if (std::shared_ptr<OpenCall> alive = call.lock(); alive != nullptr) {
        calls.push_back(std::move(alive));
      }
    }
  }
  for (const std::shared_ptr<OpenCall>& call : calls) call->End(status);
}

bool OpenCalls::draining() const {
  common::MutexLock lock(&mutex_);
  return draining_;
}

}  // namespace hopscope::rpc

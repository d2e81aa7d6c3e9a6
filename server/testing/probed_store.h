// For tests: a store that counts its operations, and fails when it is told to.
#ifndef HOPSCOPE_SERVER_TESTING_PROBED_STORE_H_
#define HOPSCOPE_SERVER_TESTING_PROBED_STORE_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/mutex.h"
#include "server/store/store.h"

namespace hopscope::server::testing {

// Thread-safe.
class ProbedStore : public store::Store {
 public:
  explicit ProbedStore(std::unique_ptr<store::Store> store) : store_(std::move(store)) {}

  absl::Status Write(absl::string_view operation, WriteBody body) override {
    HoldAndCount(operation);
    if (absl::Status status = failure(); !status.ok()) return status;
    return store_->Write(operation, body);
  }
  absl::Status Read(absl::string_view operation, ReadBody body) override {
    HoldAndCount(operation);
    if (absl::Status status = failure(); !status.ok()) return status;
    return store_->Read(operation, body);
  }
  absl::Status Probe() override {
    if (absl::Status status = failure(); !status.ok()) return status;
    return store_->Probe();
  }

  // What every operation answers from here on; OK: works again.
  void Fail(const absl::Status& status) {
    common::MutexLock lock(&mutex_);
    failure_ = status;
  }
  // Operations of this name stop before they begin, until Release().
  void Hold(absl::string_view operation) {
    common::MutexLock lock(&mutex_);
    held_ = std::string(operation);
  }
  void Release() {
    common::MutexLock lock(&mutex_);
    held_.clear();
    changed_.SignalAll();
  }
  int Count(absl::string_view operation) {
    common::MutexLock lock(&mutex_);
    return counts_[std::string(operation)];
  }
  void AwaitCount(absl::string_view operation, int count) {
    common::MutexLock lock(&mutex_);
    while (counts_[std::string(operation)] < count) changed_.Wait(&mutex_);
  }

 private:
  absl::Status failure() {
    common::MutexLock lock(&mutex_);
    return failure_;
  }
  void HoldAndCount(absl::string_view operation) {
    common::MutexLock lock(&mutex_);
    ++counts_[std::string(operation)];
    changed_.SignalAll();
    while (operation == held_) changed_.Wait(&mutex_);
  }

  const std::unique_ptr<store::Store> store_;
  common::Mutex mutex_;
  common::CondVar changed_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::string held_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hopscope::server::testing

#endif  // HOPSCOPE_SERVER_TESTING_PROBED_STORE_H_

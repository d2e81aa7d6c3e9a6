// For tests: a store that cannot be used while it is told so, as one whose disk is full.
#ifndef HOPSCOPE_SERVER_JOBS_TESTING_FAILING_STORE_H_
#define HOPSCOPE_SERVER_JOBS_TESTING_FAILING_STORE_H_

#include <atomic>

#include "common/status.h"
#include "server/store/store.h"

namespace hopscope::jobs::testing {

// Thread-safe.
class FailingStore : public store::Store {
 public:
  enum class Fault {
    kNone,
    kBefore,  // calls fail and change nothing
    kAfter,   // writes are made, but the caller is told that they failed: the answer was lost
  };

  // `store` must outlive this one.
  explicit FailingStore(store::Store* store) : store_(store) {}

  void SetFault(Fault fault) { fault_ = fault; }

  absl::Status Write(absl::string_view operation, WriteBody body) override {
    if (fault_ == Fault::kBefore) return Unavailable();
    const absl::Status status = store_->Write(operation, body);
    return fault_ == Fault::kAfter && status.ok() ? Unavailable() : status;
  }
  absl::Status Read(absl::string_view operation, ReadBody body) override {
    return fault_ == Fault::kBefore ? Unavailable() : store_->Read(operation, body);
  }
  absl::Status Probe() override { return fault_ == Fault::kNone ? store_->Probe() : Unavailable(); }

 private:
  static absl::Status Unavailable() {
    return common::MakeError(absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE", "told to fail");
  }

  store::Store* const store_;
  std::atomic<Fault> fault_ = Fault::kNone;
};

}  // namespace hopscope::jobs::testing

#endif  // HOPSCOPE_SERVER_JOBS_TESTING_FAILING_STORE_H_

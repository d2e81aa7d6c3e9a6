// A store whose failures are heard at once, and not only when it is probed next: a probe may still
// find room on a disk that is full for everything larger.
#ifndef HOPSCOPE_SERVER_WATCHED_STORE_H_
#define HOPSCOPE_SERVER_WATCHED_STORE_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "server/store/store.h"

namespace hopscope::server {

// Passes everything on. `on_failure` hears each error of a read or write that is the store's own
// (UNAVAILABLE or DATA_LOSS), on the caller's thread, before the caller gets it; it must not block.
// That the store works again is the probe's to find out. Thread-safe as the store is.
class WatchedStore : public store::Store {
 public:
  using OnFailure = std::function<void(const absl::Status&)>;

  WatchedStore(std::unique_ptr<store::Store> store, OnFailure on_failure)
      : store_(std::move(store)), on_failure_(std::move(on_failure)) {}

  absl::Status Write(absl::string_view operation, WriteBody body) override {
    return Heard(store_->Write(operation, body));
  }
  absl::Status Read(absl::string_view operation, ReadBody body) override {
    return Heard(store_->Read(operation, body));
  }
  // Its caller knows.
  absl::Status Probe() override { return store_->Probe(); }

 private:
  absl::Status Heard(absl::Status status) const {
    if (absl::IsUnavailable(status) || absl::IsDataLoss(status)) on_failure_(status);
    return status;
  }

  const std::unique_ptr<store::Store> store_;
  const OnFailure on_failure_;
};

}  // namespace hopscope::server

#endif  // HOPSCOPE_SERVER_WATCHED_STORE_H_

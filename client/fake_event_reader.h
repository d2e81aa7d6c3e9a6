// An EventReader for tests that gives the events it was made with.
#ifndef HOPSCOPE_CLIENT_FAKE_EVENT_READER_H_
#define HOPSCOPE_CLIENT_FAKE_EVENT_READER_H_

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "client/cancellation.h"
#include "client/connection.h"

namespace hopscope::client {

class FakeEventReader : public EventReader {
 public:
  // After the events comes `end`; OK: the end of the job.
  explicit FakeEventReader(std::vector<v1::EvalEvent> events, absl::Status end = absl::OkStatus())
      : events_(std::move(events)), end_(std::move(end)) {}

  // Called before the event of this index (its end: events.size()) is given; may block.
  void BeforeEvent(size_t index, std::function<void()> call) {
    at_ = index;
    call_ = std::move(call);
  }

  absl::StatusOr<std::optional<v1::EvalEvent>> Next() override {
    if (call_ && next_ == at_) std::exchange(call_, nullptr)();
    if (cancellation_.cancelled()) return absl::CancelledError("cancelled");
    if (next_ < events_.size()) return events_[next_++];
    if (!end_.ok()) return end_;
    return std::optional<v1::EvalEvent>();
  }

  void Cancel() override { cancellation_.Cancel(); }

 private:
  const std::vector<v1::EvalEvent> events_;
  const absl::Status end_;
  size_t next_ = 0;
  size_t at_ = 0;
  std::function<void()> call_;
  Cancellation cancellation_;
};

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_FAKE_EVENT_READER_H_

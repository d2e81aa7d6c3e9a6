#include "server/rpc/event_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace hopscope::rpc {
namespace {

bool IsFinal(v1::EvalJob::State state) {
  switch (state) {
    case v1::EvalJob::STATE_SUCCEEDED:
    case v1::EvalJob::STATE_FAILED:
    case v1::EvalJob::STATE_CANCELLED:
    case v1::EvalJob::STATE_PARTIALLY_SUCCEEDED:
      return true;
    default:
      return false;
  }
}

}  // namespace

EventStream::EventStream(Runtime* runtime, jobs::JobService* jobs, jobs::Signals* signals,
                         const CallRecord& record, const v1::WatchEvalJobRequest& request)
    : runtime_(runtime),
      jobs_(jobs),
      signals_(signals),
      record_(record),
      job_(request.name()),
      sequence_(request.after_sequence()) {}

void EventStream::Start() {
  const std::shared_ptr<EventStream> self = shared_from_this();
  const bool open = runtime_->open_calls.Add(self);
  std::unique_ptr<jobs::Signals::Subscription> subscription;
  if (open) {
    // Signals keep a callback until its subscription ends, so this must not keep the stream.
    const std::weak_ptr<EventStream> weak = self;
    subscription = signals_->OnJob(job_, [weak](const v1::EvalEvent* live) {
      if (const auto stream = weak.lock(); stream != nullptr) stream->OnNews(live);
    });
  }
  common::MutexLock lock(&mutex_);
  self_ = self;
  subscription_ = std::move(subscription);
  if (!open) {
    FinishOnce(ShuttingDownError());
    return;
  }
  counted_ = true;
  runtime_->metrics.watchers().Increment();
  Continue();
}

void EventStream::OnNews(const v1::EvalEvent* live) {
  common::MutexLock lock(&mutex_);
  if (live == nullptr) {
    unread_ = true;
  } else if (live->has_cell_progress()) {
    progress_ = *live;
  } else {
    if (units_started_.size() >= kMaxUnitsStarted) units_started_.pop_front();
    units_started_.push_back(*live);
  }
  Continue();
}

void EventStream::Continue() {
  if (finished_ || writing_) return;
  if (end_with_.has_value()) {
    FinishOnce(*end_with_);
  } else if (!page_.events.empty()) {
    v1::EvalEvent event = std::move(page_.events.front());
    page_.events.pop_front();
    Write(std::move(event));
  } else if (page_.finished) {
    FinishOnce(absl::OkStatus());
  } else if (reading_) {
    return;
  } else if (unread_) {
    unread_ = false;
    reading_ = true;
    if (!runtime_->executor.TrySubmit(
            [self = shared_from_this(), after = sequence_] { self->ReadNextPage(after); })) {
      FinishOnce(BusyError());
    }
  } else if (!units_started_.empty()) {
    v1::EvalEvent event = std::move(units_started_.front());
    units_started_.pop_front();
    Write(std::move(event));
  } else if (progress_.has_value()) {
    v1::EvalEvent event = *std::move(progress_);
    progress_.reset();
    Write(std::move(event));
  }
}

void EventStream::Write(v1::EvalEvent event) {
  writing_ = true;
  *in_flight_.mutable_event() = std::move(event);
  StartWrite(&in_flight_);
}

void EventStream::ReadNextPage(int64_t after_sequence) {
  absl::StatusOr<Page> page = ReadPage(after_sequence);
  common::MutexLock lock(&mutex_);
  reading_ = false;
  if (!page.ok()) {
    if (!end_with_.has_value()) end_with_ = page.status();
  } else {
    page_ = *std::move(page);
    if (!page_.events.empty()) sequence_ = page_.events.back().sequence();
    if (page_.may_be_full) unread_ = true;
  }
  Continue();
}

absl::StatusOr<EventStream::Page> EventStream::ReadPage(int64_t after_sequence) const {
  Page page;
  HOPSCOPE_ASSIGN_OR_RETURN(jobs::JobService::EventPage events,
                            jobs_->ReadEvents(job_, after_sequence, kPageEvents, kPageBytes));
  page.finished = events.finished;
  page.events.assign(std::make_move_iterator(events.events.begin()),
                     std::make_move_iterator(events.events.end()));
  if (!page.events.empty()) {
    int64_t bytes = 0;
    for (const v1::EvalEvent& event : page.events) bytes += event.ByteSizeLong();
    // ReadEvents keeps to the bytes about, not exactly.
    page.may_be_full = page.events.size() >= size_t{kPageEvents} || bytes >= kPageBytes / 2;
    return page;
  }

  // Nothing new: because the client has seen everything up to JobFinished, or more than there is?
  v1::GetEvalJobRequest request;
  request.set_name(job_);
  HOPSCOPE_ASSIGN_OR_RETURN(const v1::GetEvalJobResponse found, jobs_->GetEvalJob(request));
  if (after_sequence > found.job().last_sequence()) {
    return common::InvalidField(
        "VALUE_OUT_OF_RANGE", "after_sequence", absl::StrCat(after_sequence),
        absl::StrCat("the newest event of ", job_, " has ", found.job().last_sequence()));
  }
  page.finished = IsFinal(found.job().state()) && after_sequence == found.job().last_sequence();
  return page;
}

void EventStream::OnWriteDone(bool ok) {
  common::MutexLock lock(&mutex_);
  writing_ = false;
  if (!ok && !end_with_.has_value()) end_with_ = AbandonedError();
  Continue();
}

void EventStream::End(const absl::Status& status) {
  common::MutexLock lock(&mutex_);
  if (!end_with_.has_value()) end_with_ = status;
  Continue();
}

void EventStream::OnCancel() { EventStream::End(AbandonedError()); }

void EventStream::FinishOnce(const absl::Status& status) {
  if (finished_) return;
  finished_ = true;
  Finish(record_.End(status));
}

void EventStream::OnDone() {
  // Released without the lock: the end of a subscription waits for its callback, which takes the
  // lock.
  std::unique_ptr<jobs::Signals::Subscription> subscription;
  std::shared_ptr<EventStream> self;
  bool counted = false;
  {
    common::MutexLock lock(&mutex_);
    subscription = std::move(subscription_);
    self = std::move(self_);
    counted = counted_;
  }
  runtime_->open_calls.Remove(this);
  if (counted) runtime_->metrics.watchers().Decrement();
}

}  // namespace hopscope::rpc

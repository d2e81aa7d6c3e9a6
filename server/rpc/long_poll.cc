#include "server/rpc/long_poll.h"

#include <utility>

namespace hopscope::rpc {

LongPoll::LongPoll(Runtime* runtime, ExecutorLane* lane, const CallRecord& record, Try try_once,
                   Undo undo)
    : runtime_(runtime),
      lane_(lane),
      record_(record),
      try_once_(std::move(try_once)),
      undo_(std::move(undo)) {}

void LongPoll::Start(absl::Duration wait, const Subscribe& subscribe) {
  const std::shared_ptr<LongPoll> self = shared_from_this();
  const bool open = runtime_->open_calls.Add(self);
  std::unique_ptr<jobs::Signals::Subscription> subscription;
  std::optional<Timer::Id> timer;
  if (open && wait > absl::ZeroDuration()) {
    // Signals keep a callback until its subscription ends, so these must not keep the call.
    const std::weak_ptr<LongPoll> weak = self;
    subscription = subscribe([weak] {
      if (const auto poll = weak.lock(); poll != nullptr) poll->Wake();
    });
    timer = runtime_->timer.CallAfter(wait, [weak] {
      if (const auto poll = weak.lock(); poll != nullptr) poll->TimeIsUp();
    });
  }
  common::MutexLock lock(&mutex_);
  self_ = self;
  subscription_ = std::move(subscription);
  timer_ = timer;
  if (!open) {
    FinishOnce(ShuttingDownError());
    return;
  }
  if (!timer.has_value()) time_is_up_ = true;
  if (state_ == State::kWaiting) QueueTry();
}

void LongPoll::Wake() {
  common::MutexLock lock(&mutex_);
  if (state_ == State::kWaiting) {
    QueueTry();
  } else if (state_ == State::kTrying) {
    woken_ = true;
  }
}

void LongPoll::QueueTry() {
  state_ = State::kQueued;
  if (!lane_->TrySubmit([self = shared_from_this()] { self->RunTry(); })) FinishOnce(BusyError());
}

void LongPoll::RunTry() {
  Try try_once;
  {
    common::MutexLock lock(&mutex_);
    if (state_ != State::kQueued) return;
    state_ = State::kTrying;
    woken_ = false;
    try_once = try_once_;
  }
  const absl::StatusOr<bool> found = try_once();

  Undo undo;
  {
    common::MutexLock lock(&mutex_);
    tried_ = true;
    if (!found.ok()) {
      FinishOnce(end_with_.value_or(found.status()));
    } else if (end_with_.has_value() && *found && undo_) {
      undo = undo_;
    } else if (end_with_.has_value()) {
      FinishOnce(*end_with_);
    } else if (*found || time_is_up_) {
      FinishOnce(absl::OkStatus());
    } else if (woken_) {
      QueueTry();
    } else {
      state_ = State::kWaiting;
    }
  }
  if (undo) {
    undo();
    common::MutexLock lock(&mutex_);
    FinishOnce(*end_with_);
  }
}

void LongPoll::TimeIsUp() {
  common::MutexLock lock(&mutex_);
  if (tried_ && (state_ == State::kWaiting || state_ == State::kQueued)) {
    FinishOnce(absl::OkStatus());
  } else {
    time_is_up_ = true;
  }
}

void LongPoll::End(const absl::Status& status) {
  common::MutexLock lock(&mutex_);
  if (state_ == State::kTrying) {
    if (!end_with_.has_value()) end_with_ = status;
  } else {
    FinishOnce(status);
  }
}

void LongPoll::OnCancel() { LongPoll::End(AbandonedError()); }

void LongPoll::FinishOnce(const absl::Status& status) {
  if (state_ == State::kEnded) return;
  state_ = State::kEnded;
  Finish(record_.End(status));
}

void LongPoll::OnDone() {
  // Released without the lock: the end of a subscription waits for its callback, which takes the
  // lock.
  std::unique_ptr<jobs::Signals::Subscription> subscription;
  std::optional<Timer::Id> timer;
  std::shared_ptr<LongPoll> self;
  {
    common::MutexLock lock(&mutex_);
    subscription = std::move(subscription_);
    timer = timer_;
    self = std::move(self_);
    // They name the request and the response, which are gone after this.
    try_once_ = nullptr;
    undo_ = nullptr;
  }
  runtime_->open_calls.Remove(this);
  if (timer.has_value()) runtime_->timer.Cancel(*timer);
}

}  // namespace hopscope::rpc

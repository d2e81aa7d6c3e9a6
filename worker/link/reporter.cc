#include "worker/link/reporter.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/status.h"

namespace hopscope::link {
namespace {

// Errors of the connection or of the server's state, as opposed to errors of the report.
bool MayPass(const absl::Status& error) {
  switch (error.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return true;
    default:
      return false;
  }
}

}  // namespace

Reporter::Reporter(Options options, DispatchStub* stub, const common::Clock* clock, OnEnd on_end)
    : options_(std::move(options)),
      stub_(stub),
      on_end_(std::move(on_end)),
      outages_("ReportUnit", options_.worker_id, clock),
      thread_([this] { Loop(); }) {}

Reporter::~Reporter() { Stop(); }

void Reporter::Submit(UnitOutcome outcome) {
  common::MutexLock lock(&mutex_);
  const int64_t bytes = outcome.size_bytes();
  bytes_ += bytes;
  backlog_.push_back({.outcome = std::move(outcome), .bytes = bytes});
  changed_.SignalAll();
}

int Reporter::backlog() const {
  common::MutexLock lock(&mutex_);
  return static_cast<int>(backlog_.size());
}

bool Reporter::full() const {
  common::MutexLock lock(&mutex_);
  return static_cast<int>(backlog_.size()) >= options_.max_backlog ||
         bytes_ >= options_.max_backlog_bytes;
}

void Reporter::TryNow() { retry_.Ring(); }

bool Reporter::WaitUntilEmpty(absl::Time deadline) const {
  common::MutexLock lock(&mutex_);
  while (!backlog_.empty() || ending_) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return false;
    changed_.WaitWithTimeout(&mutex_, left);
  }
  return true;
}

void Reporter::Stop() {
  {
    common::MutexLock lock(&mutex_);
    stopping_ = true;
    if (call_ != nullptr) call_->Cancel();
    changed_.SignalAll();
  }
  retry_.Ring();
  if (thread_.joinable()) thread_.join();
}

void Reporter::Loop() {
  Backoff backoff(options_.backoff, options_.seed);
  while (true) {
    Pending* pending = nullptr;
    {
      common::MutexLock lock(&mutex_);
      while (backlog_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (stopping_) return;
      pending = &backlog_.front();
    }
    const uint64_t rings = retry_.rings();
    const Sent sent = Send(pending);
    if (sent == Sent::kEnded) {
      backoff.Reset();
      const std::string attempt_id = pending->outcome.label().attempt_id;
      {
        common::MutexLock lock(&mutex_);
        bytes_ -= pending->bytes;
        backlog_.pop_front();
        ending_ = true;
      }
      on_end_(attempt_id);
      common::MutexLock lock(&mutex_);
      ending_ = false;
      changed_.SignalAll();
      continue;
    }
    if (sent == Sent::kRefused) {
      common::MutexLock lock(&mutex_);
      backlog_.push_back(std::move(backlog_.front()));
      backlog_.pop_front();
    }
    retry_.WaitPast(rings, backoff.Next());
  }
}

Reporter::Sent Reporter::Send(Pending* pending) {
  const UnitLabel& label = pending->outcome.label();
  while (pending->next_part < pending->outcome.PartCount(options_.max_part_bytes)) {
    const absl::StatusOr<v1::ReportUnitResponse> response = SendPart(*pending);
    if (absl::IsNotFound(response.status())) {
      LogUnit(spdlog::level::warn, "the server no longer knows an attempt that was reported", label,
              response.status());
      return Sent::kEnded;
    }
    if (!response.ok()) {
      if (!MayPass(response.status())) return Refuse(pending, response.status());
      // Ended by Stop, or by nobody that matters.
      if (!absl::IsCancelled(response.status())) outages_.Failed(response.status());
      return Sent::kUnreachable;
    }
    outages_.Worked();
    switch (response->disposition()) {
      case v1::ReportUnitResponse::DISPOSITION_APPLIED:
        return Sent::kEnded;
      case v1::ReportUnitResponse::DISPOSITION_SUPERSEDED:
        LogUnit(spdlog::level::info, "an attempt was reported after another had ended its unit",
                label);
        return Sent::kEnded;
      case v1::ReportUnitResponse::DISPOSITION_PARTIAL:
      case v1::ReportUnitResponse::DISPOSITION_DUPLICATE:
        ++pending->next_part;
        if (response->disposition() == v1::ReportUnitResponse::DISPOSITION_DUPLICATE &&
            pending->next_part == pending->outcome.PartCount(options_.max_part_bytes)) {
          return Sent::kEnded;
        }
        break;
      default:
        return Refuse(pending,
                      absl::UnknownError(absl::StrCat("the server answered with disposition ",
                                                      static_cast<int>(response->disposition()))));
    }
  }
  return Refuse(pending, absl::DataLossError("the server awaits more parts than there are"));
}

absl::StatusOr<v1::ReportUnitResponse> Reporter::SendPart(const Pending& pending) {
  v1::ReportUnitRequest request = pending.outcome.Part(pending.next_part, options_.max_part_bytes);
  request.set_worker_id(options_.worker_id);
  Call call(options_.call_timeout);
  {
    common::MutexLock lock(&mutex_);
    if (stopping_) return absl::CancelledError("the worker stops");
    call_ = &call;
  }
  absl::StatusOr<v1::ReportUnitResponse> response = stub_->ReportUnit(request, &call);
  common::MutexLock lock(&mutex_);
  call_ = nullptr;
  return response;
}

Reporter::Sent Reporter::Refuse(Pending* pending, const absl::Status& error) {
  pending->next_part = 0;
  if (++pending->refusals < options_.max_refusals) {
    LogUnit(spdlog::level::warn, "the server refuses a report; trying again",
            pending->outcome.label(), error);
    return Sent::kRefused;
  }
  LogUnit(spdlog::level::err, "the server refuses a report; giving it up", pending->outcome.label(),
          error);
  if (!pending->outcome.is_result()) return Sent::kEnded;
  pending->refusals = 0;
  pending->outcome = UnitOutcome::Failure(
      pending->outcome.label(),
      common::MakeError(absl::StatusCode::kInternal, "INTERNAL",
                        absl::StrCat("the server refused the result: ", error.message())));
  return Sent::kRefused;
}

}  // namespace hopscope::link

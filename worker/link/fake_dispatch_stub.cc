#include "worker/link/fake_dispatch_stub.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace hopscope::link {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);

// A copy that shares nothing with the original: abseil's own library counts the references to a
// shared one, which ThreadSanitizer does not see.
absl::Status Copy(const absl::Status& status) {
  absl::Status copy(status.code(), status.message());
  status.ForEachPayload(
      [&copy](absl::string_view url, const absl::Cord& payload) { copy.SetPayload(url, payload); });
  return copy;
}

}  // namespace

void FakeDispatchStub::SetHeartbeatInterval(absl::Duration interval) {
  common::MutexLock lock(&mutex_);
  heartbeat_interval_ = interval;
}

void FakeDispatchStub::AddUnit(const std::string& attempt_id, v1::WorkUnit unit) {
  common::MutexLock lock(&mutex_);
  v1::UnitLease lease;
  lease.set_attempt_id(attempt_id);
  lease.set_attempt(1);
  *lease.mutable_unit() = std::move(unit);
  units_.push_back(std::move(lease));
  changed_.SignalAll();
}

void FakeDispatchStub::CancelAttempt(const std::string& attempt_id) {
  common::MutexLock lock(&mutex_);
  cancelled_.insert(attempt_id);
  changed_.SignalAll();
}

void FakeDispatchStub::SetDrain(bool drain) {
  common::MutexLock lock(&mutex_);
  drain_ = drain;
  changed_.SignalAll();
}

void FakeDispatchStub::Down(const absl::Status& error) {
  common::MutexLock lock(&mutex_);
  down_ = Copy(error);
  last_outage_ = Copy(error);
  ++outages_;
  changed_.SignalAll();
}

void FakeDispatchStub::Up(bool forget) {
  common::MutexLock lock(&mutex_);
  down_ = absl::OkStatus();
  if (forget) workers_.clear();
  changed_.SignalAll();
}

void FakeDispatchStub::RefuseRegistration(const absl::Status& error) {
  common::MutexLock lock(&mutex_);
  refusal_ = Copy(error);
}

void FakeDispatchStub::FailReports(int count, const absl::Status& error, bool applied) {
  common::MutexLock lock(&mutex_);
  failing_reports_ = count;
  report_error_ = Copy(error);
  report_error_after_ = applied;
}

void FakeDispatchStub::ForgetPartsBefore(int part) {
  common::MutexLock lock(&mutex_);
  forget_before_ = part;
}

bool FakeDispatchStub::Await(const std::function<bool(const Seen&)>& condition) {
  const absl::Time deadline = absl::Now() + kPatience;
  common::MutexLock lock(&mutex_);
  while (!condition(seen_)) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return false;
    changed_.WaitWithTimeout(&mutex_, left);
  }
  return true;
}

FakeDispatchStub::Seen FakeDispatchStub::seen() const {
  common::MutexLock lock(&mutex_);
  return seen_;
}

absl::Status FakeDispatchStub::Check(const std::string& worker_id) {
  if (!down_.ok()) {
    ++seen_.failed_calls;
    changed_.SignalAll();
    return Copy(down_);
  }
  if (workers_.count(worker_id) == 0) return absl::NotFoundError("no such worker");
  return absl::OkStatus();
}

absl::Status FakeDispatchStub::Poll(Call* call, absl::Duration wait, int outages,
                                    const std::function<bool()>& ready) {
  const absl::Time deadline = absl::Now() + std::min(wait, call->timeout());
  bool cancelled = false;
  // Locks in the order call, server: Call::Cancel runs this with its own lock held.
  Call::Ending ending(call, [this, &cancelled] {
    common::MutexLock lock(&mutex_);
    cancelled = true;
    changed_.SignalAll();
  });
  common::MutexLock lock(&mutex_);
  while (true) {
    if (cancelled) return absl::CancelledError("the call was cancelled");
    if (outages_ != outages) return Copy(last_outage_);
    if (ready()) return absl::OkStatus();
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return absl::OkStatus();
    changed_.WaitWithTimeout(&mutex_, left);
  }
}

absl::StatusOr<v1::RegisterWorkerResponse> FakeDispatchStub::RegisterWorker(
    const v1::RegisterWorkerRequest& request, Call* call) {
  if (call->cancelled()) return absl::CancelledError("the call was cancelled");
  common::MutexLock lock(&mutex_);
  seen_.registrations.push_back(request);
  changed_.SignalAll();
  if (!down_.ok()) {
    ++seen_.failed_calls;
    return Copy(down_);
  }
  if (!refusal_.ok()) return Copy(refusal_);
  workers_.insert(request.worker_id());
  v1::RegisterWorkerResponse response;
  response.set_lease_duration_ms(30000);
  response.set_heartbeat_interval_ms(absl::ToInt64Milliseconds(heartbeat_interval_));
  return response;
}

absl::StatusOr<v1::LeaseUnitsResponse> FakeDispatchStub::LeaseUnits(
    const v1::LeaseUnitsRequest& request, Call* call) {
  int outages;
  {
    common::MutexLock lock(&mutex_);
    outages = outages_;
    seen_.lease_requests.push_back(request);
    changed_.SignalAll();
    if (absl::Status status = Check(request.worker_id()); !status.ok()) return status;
  }
  // A draining worker's poll is answered at once with nothing.
  const absl::Status status =
      Poll(call, absl::Milliseconds(request.wait_ms()), outages,
           [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
             return drain_ || !units_.empty() ||
                    (!seen_.heartbeats.empty() && seen_.heartbeats.back().draining());
           });
  if (!status.ok()) return status;
  common::MutexLock lock(&mutex_);
  v1::LeaseUnitsResponse response;
  while (!drain_ && !units_.empty() && response.leases_size() < request.max_units()) {
    seen_.leased.push_back(units_.front().attempt_id());
    *response.add_leases() = std::move(units_.front());
    units_.pop_front();
  }
  changed_.SignalAll();
  return response;
}

absl::StatusOr<v1::HeartbeatResponse> FakeDispatchStub::Heartbeat(
    const v1::HeartbeatRequest& request, Call* call) {
  int outages;
  {
    common::MutexLock lock(&mutex_);
    outages = outages_;
    seen_.heartbeats.push_back(request);
    changed_.SignalAll();
    if (absl::Status status = Check(request.worker_id()); !status.ok()) return status;
  }
  const auto is_cancelled = [this](const std::string& id)
                                ABSL_NO_THREAD_SAFETY_ANALYSIS { return cancelled_.count(id) > 0; };
  const absl::Status status = Poll(call, absl::Milliseconds(request.wait_ms()), outages,
                                   [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
                                     return drain_ != request.known_drain() ||
                                            std::any_of(request.attempt_ids().begin(),
                                                        request.attempt_ids().end(), is_cancelled);
                                   });
  if (!status.ok()) return status;
  common::MutexLock lock(&mutex_);
  v1::HeartbeatResponse response;
  response.set_drain(drain_);
  for (const std::string& id : request.attempt_ids()) {
    if (is_cancelled(id)) response.add_cancelled_attempt_ids(id);
  }
  return response;
}

absl::StatusOr<v1::ReportUnitResponse> FakeDispatchStub::ReportUnit(
    const v1::ReportUnitRequest& request, Call* call) {
  if (call->cancelled()) return absl::CancelledError("the call was cancelled");
  common::MutexLock lock(&mutex_);
  seen_.reports.push_back(request);
  changed_.SignalAll();
  if (!down_.ok()) {
    ++seen_.failed_calls;
    return Copy(down_);
  }
  if (failing_reports_ > 0) {
    --failing_reports_;
    if (report_error_after_) Apply(request).IgnoreError();
    return Copy(report_error_);
  }
  return Apply(request);
}

void FakeDispatchStub::SetTokens(const std::string& digest, std::vector<std::string> lines,
                                 size_t page_bytes) {
  common::MutexLock lock(&mutex_);
  tokens_[digest] = std::move(lines);
  page_bytes_ = page_bytes;
}

absl::StatusOr<v1::FetchTokensResponse> FakeDispatchStub::FetchTokens(
    const v1::FetchTokensRequest& request, Call* call) {
  if (call->cancelled()) return absl::CancelledError("the call was cancelled");
  common::MutexLock lock(&mutex_);
  changed_.SignalAll();
  if (!down_.ok()) {
    ++seen_.failed_calls;
    return Copy(down_);
  }
  const auto found = tokens_.find(request.digest());
  if (found == tokens_.end()) return absl::NotFoundError("no such sequences");
  seen_.fetches.push_back(request);
  std::string range;
  for (int64_t i = 0; i < request.item_count(); ++i) {
    range += found->second.at(request.first_item() + i) + "\n";
  }
  v1::FetchTokensResponse response;
  response.set_total_bytes(static_cast<int64_t>(range.size()));
  response.set_data(range.substr(request.offset(), page_bytes_));
  return response;
}

absl::StatusOr<v1::ReportUnitResponse> FakeDispatchStub::Apply(
    const v1::ReportUnitRequest& request) {
  const std::string& id = request.attempt_id();
  v1::ReportUnitResponse response;
  response.set_disposition(v1::ReportUnitResponse::DISPOSITION_APPLIED);
  if (std::find(seen_.leased.begin(), seen_.leased.end(), id) == seen_.leased.end()) {
    return absl::NotFoundError("no such attempt");
  }
  if (cancelled_.count(id) > 0) {
    response.set_disposition(v1::ReportUnitResponse::DISPOSITION_SUPERSEDED);
  } else if (seen_.results.count(id) + seen_.failures.count(id) + seen_.hand_backs.count(id) > 0) {
    response.set_disposition(v1::ReportUnitResponse::DISPOSITION_DUPLICATE);
  } else if (request.has_failure()) {
    seen_.failures[id] = request.failure();
  } else if (request.has_hand_back()) {
    seen_.hand_backs[id] = request.hand_back();
  } else {
    std::map<int, std::string>& parts = parts_[id];
    if (forget_before_ > 0 && request.part() == forget_before_) {
      parts.clear();
      forget_before_ = 0;
    }
    parts[request.part()] = request.result_part();
    if (static_cast<int>(parts.size()) < request.part_count()) {
      response.set_disposition(v1::ReportUnitResponse::DISPOSITION_PARTIAL);
      return response;
    }
    std::string bytes;
    for (const auto& [number, part] : parts) bytes += part;
    v1::UnitResult result;
    if (!result.ParseFromString(bytes)) return absl::InvalidArgumentError("no result");
    seen_.results[id] = result;
  }
  changed_.SignalAll();
  return response;
}

}  // namespace hopscope::link

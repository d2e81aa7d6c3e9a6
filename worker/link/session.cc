#include "worker/link/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/logging.h"
#include "common/status.h"

namespace hopscope::link {
namespace {

// Where the server names no interval.
constexpr absl::Duration kDefaultInterval = absl::Seconds(10);

}  // namespace

Session::Session(Options options, DispatchStub* stub, const common::Clock* clock,
                 Listener* listener)
    : options_(std::move(options)),
      stub_(stub),
      clock_(clock),
      listener_(listener),
      outages_("RegisterWorker and Heartbeat", options_.worker_id, clock),
      backoff_(options_.backoff, options_.seed),
      last_step_(clock->Now()) {}

Session::~Session() { Stop(); }

void Session::Start() {
  thread_ = std::thread([this] { Loop(); });
}

void Session::Poll() {
  common::MutexLock lock(&mutex_);
  ++polls_;
  if (call_ != nullptr && call_is_long_poll_) call_->Cancel();
}

void Session::Forgotten() {
  {
    common::MutexLock lock(&mutex_);
    registered_ = false;
  }
  Poll();
}

void Session::AnnounceDraining() {
  {
    common::MutexLock lock(&mutex_);
    draining_ = true;
  }
  Poll();
}

bool Session::connected() const {
  common::MutexLock lock(&mutex_);
  return connected_;
}

absl::Duration Session::SinceStep() const {
  common::MutexLock lock(&mutex_);
  return clock_->Now() - last_step_;
}

absl::Duration Session::MaxStep() const {
  common::MutexLock lock(&mutex_);
  return 2 * (interval_ + options_.call_timeout + options_.backoff.max + options_.min_spacing);
}

void Session::Stop() {
  {
    common::MutexLock lock(&mutex_);
    stopping_ = true;
    if (call_ != nullptr) call_->Cancel();
  }
  stop_.Ring();
  if (thread_.joinable()) thread_.join();
}

void Session::SayGoodbye() {
  if (!connected()) return;
  v1::HeartbeatRequest request;
  request.set_worker_id(options_.worker_id);
  request.set_draining(true);
  Call call(options_.call_timeout);
  const absl::Status status = stub_->Heartbeat(request, &call).status();
  if (!status.ok()) {
    common::Log(spdlog::level::info, "the server did not hear that the worker leaves",
                {{"worker", options_.worker_id}, {"error", status}});
  }
}

void Session::Loop() {
  while (!refused_) {
    const uint64_t rings = stop_.rings();
    bool registered;
    {
      common::MutexLock lock(&mutex_);
      if (stopping_) return;
      last_step_ = clock_->Now();
      registered = registered_;
    }
    const absl::Duration wait = registered ? Beat() : Register();
    if (wait > absl::ZeroDuration()) stop_.WaitPast(rings, wait);
  }
}

absl::Duration Session::Register() {
  v1::RegisterWorkerRequest request;
  request.set_worker_id(options_.worker_id);
  *request.mutable_description() = options_.description;
  Call call(options_.call_timeout);
  Begin(&call, /*long_poll=*/false, 0);
  absl::StatusOr<v1::RegisterWorkerResponse> response = stub_->RegisterWorker(request, &call);
  End();
  if (call.cancelled()) return absl::ZeroDuration();
  if (absl::IsFailedPrecondition(response.status()) || absl::IsInvalidArgument(response.status())) {
    refused_ = true;
    SetConnected(false);
    listener_->OnRefused(std::move(response).status());
    return absl::ZeroDuration();
  }
  if (!response.ok()) return Fail(response.status());

  absl::Duration interval = absl::Milliseconds(response->heartbeat_interval_ms());
  if (interval <= absl::ZeroDuration()) {
    interval = absl::Milliseconds(response->lease_duration_ms()) / 3;
  }
  if (interval <= absl::ZeroDuration()) interval = kDefaultInterval;
  {
    common::MutexLock lock(&mutex_);
    registered_ = true;
    interval_ = interval;
  }
  const v1::Version& version = response->server_version();
  common::Log(spdlog::level::info, "registered with the server",
              {{"worker", options_.worker_id},
               {"server_version",
                absl::StrCat(version.major(), ".", version.minor(), ".", version.patch())},
               {"lease_seconds", static_cast<double>(response->lease_duration_ms()) / 1000},
               {"heartbeat_seconds", absl::ToDoubleSeconds(interval)}});
  outages_.Worked();
  backoff_.Reset();
  SetConnected(true);
  return absl::ZeroDuration();
}

absl::Duration Session::Beat() {
  v1::HeartbeatRequest request;
  request.set_worker_id(options_.worker_id);
  uint64_t polls;
  absl::Duration interval;
  bool connected;
  {
    common::MutexLock lock(&mutex_);
    polls = polls_;
    interval = interval_;
    connected = connected_;
    request.set_draining(draining_);
    request.set_known_drain(known_drain_);
  }
  for (std::string& attempt_id : listener_->HeldAttempts()) {
    request.add_attempt_ids(std::move(attempt_id));
  }
  // After a Poll or an outage the answer should come at once. Such a heartbeat is not cut short by
  // the next Poll, so that leases are renewed however often polls come.
  const bool long_poll = connected && polls == answered_polls_;
  const absl::Duration wait = long_poll ? interval : absl::ZeroDuration();
  request.set_wait_ms(absl::ToInt64Milliseconds(wait));
  Call call(wait + options_.call_timeout);
  const absl::Time begin = clock_->Now();
  Begin(&call, long_poll, polls);
  const absl::StatusOr<v1::HeartbeatResponse> response = stub_->Heartbeat(request, &call);
  End();

  if (response.ok()) {
    outages_.Worked();
    backoff_.Reset();
    answered_polls_ = polls;
    bool drain_changed;
    {
      common::MutexLock lock(&mutex_);
      drain_changed = known_drain_ != response->drain();
      known_drain_ = response->drain();
    }
    if (response->cancelled_attempt_ids_size() > 0) {
      listener_->OnCancelled(response->cancelled_attempt_ids());
    }
    if (drain_changed) listener_->OnDrain(response->drain());
    SetConnected(true);
  } else if (absl::IsNotFound(response.status())) {
    common::Log(spdlog::level::info, "the server does not know this worker; registering again",
                {{"worker", options_.worker_id}});
    {
      common::MutexLock lock(&mutex_);
      registered_ = false;
    }
    SetConnected(false);
  } else if (!call.cancelled()) {
    return Fail(response.status());
  }
  return std::min(options_.min_spacing - (clock_->Now() - begin), options_.min_spacing);
}

absl::Duration Session::Fail(const absl::Status& error) {
  outages_.Failed(error);
  SetConnected(false);
  absl::Duration most = absl::InfiniteDuration();
  {
    common::MutexLock lock(&mutex_);
    // A server that comes back ends leases that nobody renews soon.
    if (registered_) most = interval_;
  }
  return std::min(backoff_.Next(), most);
}

void Session::SetConnected(bool connected) {
  {
    common::MutexLock lock(&mutex_);
    if (connected_ == connected) return;
    connected_ = connected;
  }
  listener_->OnConnection(connected);
}

void Session::Begin(Call* call, bool long_poll, uint64_t polls) {
  common::MutexLock lock(&mutex_);
  call_ = call;
  call_is_long_poll_ = long_poll;
  if (stopping_ || (long_poll && polls_ != polls)) call->Cancel();
}

void Session::End() {
  common::MutexLock lock(&mutex_);
  call_ = nullptr;
}

}  // namespace hopscope::link

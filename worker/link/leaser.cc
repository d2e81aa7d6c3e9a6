#include "worker/link/leaser.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "common/logging.h"

namespace hopscope::link {

Leaser::Leaser(Options options, DispatchStub* stub, const common::Clock* clock, Listener* listener)
    : options_(std::move(options)),
      stub_(stub),
      clock_(clock),
      listener_(listener),
      outages_("LeaseUnits", options_.worker_id, clock),
      backoff_(options_.backoff, options_.seed) {}

Leaser::~Leaser() { Stop(); }

void Leaser::Start() {
  {
    common::MutexLock lock(&mutex_);
    ended_ = false;
  }
  thread_ = std::thread([this] {
    Loop();
    common::MutexLock lock(&mutex_);
    ended_ = true;
    ended_changed_.SignalAll();
  });
}

void Leaser::Changed() { changed_.Ring(); }

void Leaser::Stop() {
  const absl::Time deadline = absl::Now() + options_.patience;
  {
    common::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  changed_.Ring();
  stop_.Ring();
  {
    common::MutexLock lock(&mutex_);
    while (!ended_) {
      const absl::Duration left = deadline - absl::Now();
      if (left <= absl::ZeroDuration()) break;
      ended_changed_.WaitWithTimeout(&mutex_, left);
    }
    if (call_ != nullptr) call_->Cancel();
  }
  if (thread_.joinable()) thread_.join();
}

void Leaser::Loop() {
  while (true) {
    const uint64_t changes = changed_.rings();
    const uint64_t stops = stop_.rings();
    {
      common::MutexLock lock(&mutex_);
      if (stopping_) return;
    }
    const int units = listener_->WantedUnits();
    if (units <= 0) {
      changed_.WaitPast(changes);
      continue;
    }
    const absl::Duration wait = Lease(units);
    if (wait > absl::ZeroDuration()) stop_.WaitPast(stops, wait);
  }
}

absl::Duration Leaser::Lease(int units) {
  v1::LeaseUnitsRequest request;
  request.set_worker_id(options_.worker_id);
  request.set_max_units(units);
  request.set_wait_ms(absl::ToInt64Milliseconds(options_.wait));
  for (std::string& digest : listener_->LoadedDigests()) {
    request.add_loaded_digests(std::move(digest));
  }
  Call call(options_.wait + options_.call_timeout);
  {
    common::MutexLock lock(&mutex_);
    if (stopping_) return absl::ZeroDuration();
    call_ = &call;
  }
  const absl::Time begin = clock_->Now();
  absl::StatusOr<v1::LeaseUnitsResponse> response = stub_->LeaseUnits(request, &call);
  {
    common::MutexLock lock(&mutex_);
    call_ = nullptr;
  }

  if (response.ok()) {
    outages_.Worked();
    backoff_.Reset();
    if (response->leases_size() > 0) {
      listener_->OnLeases(std::move(*response->mutable_leases()));
      return absl::ZeroDuration();
    }
    return std::min(options_.min_spacing - (clock_->Now() - begin), options_.min_spacing);
  }
  if (call.cancelled()) return absl::ZeroDuration();
  if (absl::IsNotFound(response.status())) {
    listener_->OnForgotten();
  } else {
    outages_.Failed(response.status());
  }
  return backoff_.Next();
}

}  // namespace hopscope::link

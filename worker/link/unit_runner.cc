#include "worker/link/unit_runner.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "worker/link/unit_outcome.h"

namespace hopscope::link {

void UnitRunner::Start(int capacity) {
  for (int i = 0; i < capacity; ++i) threads_.emplace_back([this] { Loop(); });
}

void UnitRunner::Join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void UnitRunner::Loop() {
  while (const std::shared_ptr<HeldUnit> unit = parts_.queue->Take()) Run(unit.get());
}

void UnitRunner::Run(HeldUnit* unit) {
  const std::string& attempt_id = unit->lease.attempt_id();
  UnitLabel label = LabelOf(unit->lease);
  LogUnit(spdlog::level::debug, "unit begins", label);
  engine::RunStatistics statistics;
  const absl::Time begin = parts_.clock->Now();
  parts_.metrics->BeginRun();
  const absl::StatusOr<v1::UnitResult> result =
      parts_.engine->Run(unit->lease.unit(), unit->cancel, &statistics);
  parts_.metrics->EndRun(statistics);
  const absl::Duration duration = parts_.clock->Now() - begin;

  // First: the end of the run makes the leaser ask what to hold.
  if (result.ok()) {
    parts_.prefetch->Record(duration - absl::Seconds(statistics.model_load_seconds));
  }
  const UnitQueue::Stop stop = parts_.queue->EndRun(attempt_id);
  if (result.ok()) {
    LogUnit(spdlog::level::debug, "unit computed", label);
    parts_.reporter->Submit(UnitOutcome::Result(std::move(label), *result));
  } else if (stop == UnitQueue::Stop::kCancelled) {
    LogUnit(spdlog::level::info, "unit stopped, since the server has cancelled its attempt", label);
    parts_.queue->Release(attempt_id);
  } else if (stop == UnitQueue::Stop::kShutdown) {
    LogUnit(spdlog::level::info, "unit stopped at the end of the grace time", label);
    parts_.reporter->Submit(UnitOutcome::HandBack(std::move(label), "shutdown"));
  } else {
    LogUnit(spdlog::level::warn, "unit failed", label, result.status());
    parts_.reporter->Submit(UnitOutcome::Failure(std::move(label), result.status()));
  }
}

}  // namespace hopscope::link

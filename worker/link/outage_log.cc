#include "worker/link/outage_log.h"

#include "common/logging.h"
#include "common/status.h"

namespace hopscope::link {

bool OutageLog::Failed(const absl::Status& error) {
  const std::string reason = common::ErrorReason(error);
  if (reason == reason_) return false;
  if (reason_.empty()) since_ = clock_->Now();
  reason_ = reason;
  common::Log(spdlog::level::warn, "call to the server fails; trying until it works",
              {{"call", call_}, {"worker", worker_id_}, {"reason", reason}, {"error", error}});
  return true;
}

bool OutageLog::Worked() {
  if (reason_.empty()) return false;
  reason_.clear();
  common::Log(spdlog::level::info, "call to the server works again",
              {{"call", call_},
               {"worker", worker_id_},
               {"outage_seconds", absl::ToDoubleSeconds(clock_->Now() - since_)}});
  return true;
}

}  // namespace hopscope::link

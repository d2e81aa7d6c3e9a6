// Logs a call that is repeated until it works once per change: when it begins to fail, when it
// fails in another way, and when it works again.
//
// Not thread-safe.
#ifndef HOPSCOPE_WORKER_LINK_OUTAGE_LOG_H_
#define HOPSCOPE_WORKER_LINK_OUTAGE_LOG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/clock.h"

namespace hopscope::link {

class OutageLog {
 public:
  // `call` names it in the log lines. `clock` must outlive the log.
  OutageLog(absl::string_view call, absl::string_view worker_id, const common::Clock* clock)
      : call_(call), worker_id_(worker_id), clock_(clock) {}

  // Both return true where they logged.
  bool Failed(const absl::Status& error);
  bool Worked();

 private:
  const std::string call_;
  const std::string worker_id_;
  const common::Clock* const clock_;
  std::string reason_;  // of the failure; empty: it works
  absl::Time since_;
};

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_OUTAGE_LOG_H_

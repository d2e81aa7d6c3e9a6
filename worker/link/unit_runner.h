// Computes the units of a queue with the engine, as many at once as its capacity, each on a thread
// of its own, and hands what came of them to the reporter.
//
// A run that the server has cancelled is not reported; one that was told to stop when the grace
// time ended is handed back with reason "shutdown". A run that ended well all the same is reported.
// Thread-safe.
#ifndef HOPSCOPE_WORKER_LINK_UNIT_RUNNER_H_
#define HOPSCOPE_WORKER_LINK_UNIT_RUNNER_H_

#include <thread>
#include <vector>

#include "common/clock.h"
#include "worker/engine/engine.h"
#include "worker/link/prefetch.h"
#include "worker/link/reporter.h"
#include "worker/link/unit_queue.h"
#include "worker/link/worker_metrics.h"

namespace hopscope::link {

class UnitRunner {
 public:
  // Where units come from and results go; all must outlive the runner.
  struct Parts {
    engine::Engine* engine = nullptr;
    UnitQueue* queue = nullptr;
    Reporter* reporter = nullptr;
    Prefetch* prefetch = nullptr;  // learns how long units take
    WorkerMetrics* metrics = nullptr;
    const common::Clock* clock = nullptr;
  };

  explicit UnitRunner(Parts parts) : parts_(parts) {}
  // Joins.
  ~UnitRunner() { Join(); }

  // Starts `capacity` threads.
  void Start(int capacity);

  // Blocks until the threads have ended, which they do once the queue is closed and nothing runs.
  void Join();

 private:
  void Loop();
  void Run(HeldUnit* unit);

  const Parts parts_;
  std::vector<std::thread> threads_;
};

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_UNIT_RUNNER_H_

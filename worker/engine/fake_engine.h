// An engine without a model: for tests of everything around the engine, and for demonstrations
// without LibTorch.
//
// Results
// 1. They keep the contract of engine.h: a pure function of the unit's content (sequences,
// checkpoint digest, scorers,
//    dtype) and the engine's kind. Job, unit number, trace and cost estimate play no part.
// 2. Each item has its own outcome and its own value for each head of each metric, drawn from a
// hash of that
//    content and the item's index. The results of units that cut a range into pieces merge to the
//    result of the whole range (counts exactly, moments to rounding); an item that is lost, doubled
//    or taken from another cell shows.
// 3. Values are in [0, 1). A cell's accuracy is somewhere between 1/4 and 1, another for each cell.
//
// Faults and holds are for tests and may be set at any time, also while units run. Runs are
// numbered from 1 in the order in which they begin.
//
// Thread-safe.
#ifndef HOPSCOPE_WORKER_ENGINE_FAKE_ENGINE_H_
#define HOPSCOPE_WORKER_ENGINE_FAKE_ENGINE_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "worker/engine/engine.h"

namespace hopscope::engine {

class FakeEngine : public Engine {
 public:
  struct Options {
    // Units at once; one more than that is refused with INTERNAL.
    int capacity = 1;
    // WorkerDescription.kind; part of what results depend on.
    std::string kind = "fake-1";
    // Number of layers, and of heads a layer, that scores are given for.
    int layers = 2;
    int heads = 3;
    // How long a run takes at least; it ends at once where it is cancelled.
    absl::Duration delay;
    // Further time for each item.
    absl::Duration delay_per_item;
    // WorkerDescription.model_families.
    std::vector<std::string> model_families = {"gptj"};
    // Checkpoints that stay loaded.
    int max_loaded = 4;
  };

  // Predicates may run on any thread and must not call the engine.
  using UnitPredicate = std::function<bool(const v1::WorkUnit& unit)>;
  using ItemPredicate = std::function<bool(const v1::WorkUnit& unit, int64_t item)>;

  FakeEngine() : FakeEngine(Options()) {}
  explicit FakeEngine(Options options);

  void Describe(v1::WorkerDescription* description) const override;
  absl::StatusOr<v1::UnitResult> Run(const v1::WorkUnit& unit, const CancelFlag& cancel,
                                     RunStatistics* statistics) override;
  std::vector<std::string> LoadedDigests() const override;
  int64_t LoadedBytes() const override;
  bool Healthy() const override;

  // The result that an undisturbed run of the unit gives: what a test compares with. The unit may
  // be longer than any that was planned, such as a whole cell. Uploaded sequences count as
  // labelled.
  v1::UnitResult Expected(const v1::WorkUnit& unit) const;

  // Run number `run` ends with an error of that reason (CHECKPOINT, OUT_OF_MEMORY, INTERNAL) in
  // place of its result.
  void FailRun(int64_t run, const std::string& reason);

  // Runs of such units end with an error of that reason.
  void FailUnits(UnitPredicate which, const std::string& reason);

  // Such items have no result: reason NUMERIC. Expected() knows them too.
  void FailItems(ItemPredicate which);

  // From now on, runs of such units (all, where `which` is null) stop before they give their
  // result, until they are released or cancelled.
  void Hold(UnitPredicate which = nullptr);

  // Lets `count` of the runs that are held, or will be, go on.
  void Release(int64_t count = 1);

  // Lets all go on, and holds no more.
  void ReleaseAll();

  // Waits until `count` runs are held at once. False after `timeout`.
  bool AwaitHeld(int count, absl::Duration timeout = absl::Seconds(30));

  // What Healthy() says.
  void SetHealthy(bool healthy);

  // Runs begun so far, and the most at once.
  int64_t runs() const;
  int peak_runs() const;

 private:
  // `lines` are the unit's uploaded sequences; null: it has none.
  v1::UnitResult Compute(const v1::WorkUnit& unit,
                         const std::vector<tokens::TokensLine>* lines) const;
  // Waits out delay and hold. CANCELLED where the flag is set meanwhile.
  absl::Status Wait(const v1::WorkUnit& unit, const CancelFlag& cancel);
  void TouchCheckpoint(const std::string& digest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable common::Mutex mutex_;
  common::CondVar changed_;
  std::map<int64_t, std::string> failing_runs_ ABSL_GUARDED_BY(mutex_);
  UnitPredicate failing_units_ ABSL_GUARDED_BY(mutex_);
  std::string failing_units_reason_ ABSL_GUARDED_BY(mutex_);
  ItemPredicate failing_items_ ABSL_GUARDED_BY(mutex_);
  bool holding_ ABSL_GUARDED_BY(mutex_) = false;
  UnitPredicate held_units_ ABSL_GUARDED_BY(mutex_);
  int64_t releases_ ABSL_GUARDED_BY(mutex_) = 0;  // runs that may still go on while holding_
  int held_ ABSL_GUARDED_BY(mutex_) = 0;
  bool healthy_ ABSL_GUARDED_BY(mutex_) = true;
  int64_t runs_ ABSL_GUARDED_BY(mutex_) = 0;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  int peak_runs_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<std::string> loaded_ ABSL_GUARDED_BY(mutex_);  // digests, most recently used first
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_FAKE_ENGINE_H_

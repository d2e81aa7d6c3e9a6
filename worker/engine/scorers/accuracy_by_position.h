// Accuracy for each slot of the window that an answer stood at: metric "correct", whose steps are
// the target slots, from 0. An item has the value 1 or 0 (Accuracy's) at its own slot and none at
// the others, so that the mean at a slot rests on the items whose answer stood there.
//
// The curve over slots is what arXiv 2511.11579 reads the frequencies of a head from: a U where a
// task by position lacks high ones, its inverse where one by content lacks low ones.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_ACCURACY_BY_POSITION_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_ACCURACY_BY_POSITION_H_

#include <cstdint>
#include <memory>

#include "worker/engine/scorers/accuracy.h"
#include "worker/engine/scorers/scorer.h"

namespace hopscope::engine {

class AccuracyByPosition : public Scorer {
 public:
  // `failures` must outlive the scorer.
  AccuracyByPosition(const v1::Window& window, int64_t items, ItemFailures* failures);

  std::unique_ptr<BatchScorer> StartBatch(const ScoringBatch& batch) override;

 private:
  const int64_t window_tokens_;  // the query included
  Accuracy accuracy_;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_ACCURACY_BY_POSITION_H_

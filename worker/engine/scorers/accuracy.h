// Whether the label has the largest logit of the whole vocabulary after the last token, the lowest
// id on ties: metric "correct", 1 or 0 per item.
//
// An item with a logit that is NaN or infinite fails. One without a label has no value.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_ACCURACY_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_ACCURACY_H_

#include <cstdint>
#include <memory>

#include "worker/engine/scorers/scorer.h"

namespace hopscope::engine {

class Accuracy : public Scorer {
 public:
  // `failures` must outlive the scorer.
  Accuracy(int64_t items, ItemFailures* failures);

  std::unique_ptr<BatchScorer> StartBatch(const ScoringBatch& batch) override;

 private:
  ItemFailures* const failures_;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_ACCURACY_H_

// Scorer "loss": cross entropy of the label (answer.h), one value for each sequence.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_LOSS_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_LOSS_H_

#include <cstdint>
#include <memory>

#include "worker/engine/scorers/scorer.h"

namespace hopscope::engine {

class Loss : public Scorer {
 public:
  // `failures` must outlive the scorer.
  Loss(int64_t items, ItemFailures* failures);

  std::unique_ptr<BatchScorer> StartBatch(const ScoringBatch& batch) override;

 private:
  ItemFailures* const failures_;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_LOSS_H_

// Scorer "logit_gap": how clearly each head of the last token's query prefers one key, in the
// model's scaled logits (after soft cap and ALiBi bias) over all keys that it sees, its own among
// them.
//
//   gap         the largest logit minus the second largest
//   self_logit  the query's logit against its own key
//   target_gap  the logit of the slot that the answer is read from, minus the largest other one:
//               above 0 where the head attends to it most
//
// The theory of the two look-up tasks is about the worst case of the gap over a set of inputs
// (arXiv 2605.31558, App. C): the smallest and largest values are reported beside the means. A
// query that sees its own key alone has no gap, a sequence without a known target no target_gap. A
// value that is NaN or infinite fails the item.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_LOGIT_GAP_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_LOGIT_GAP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/engine/scorers/scorer.h"

namespace hopscope::engine {

// Of some logits, the largest minus the second largest; and logit `slot` minus the largest other.
// NaN where one is not finite. At least two logits.
double LargestGap(const std::vector<double>& logits);
double GapOf(const std::vector<double>& logits, int64_t slot);

class LogitGap : public Scorer {
 public:
  // `failures` must outlive the scorer.
  LogitGap(const checkpoint::Architecture& architecture, int64_t items, ItemFailures* failures);

  std::unique_ptr<BatchScorer> StartBatch(const ScoringBatch& batch) override;

 private:
  ItemFailures* const failures_;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_LOGIT_GAP_H_

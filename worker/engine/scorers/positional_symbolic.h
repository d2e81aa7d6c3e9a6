// Scorer "positional_symbolic": how positional and how symbolic each head is at the last token
// (swap_scores.h has the formulas), and how much of its attention the query keeps for itself, which
// the two leave out.
//
// Contents are the rows of the hidden states that enter a layer, so a key before position is
// applied is what moves, with every head's own rotation or ALiBi bias for the slot that it moves
// to. Where positions are added to the embedding they are part of the content, and a logit does not
// depend on the slot: such heads are symbolic by construction. In layers with a window only the
// keys that the query sees are swapped.
//
// A value that is NaN or infinite fails the item. A query that sees fewer than two earlier keys has
// no scores.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_POSITIONAL_SYMBOLIC_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_POSITIONAL_SYMBOLIC_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/engine/scorers/scorer.h"

namespace hopscope::engine {

class PositionalSymbolic : public Scorer {
 public:
  // `spec` has every parameter filled in (spec::NormalizeScorerParams). `failures` must outlive the
  // scorer.
  PositionalSymbolic(const v1::ScorerSpec& spec, const checkpoint::Architecture& architecture,
                     int64_t items, ItemFailures* failures);

  std::unique_ptr<BatchScorer> StartBatch(const ScoringBatch& batch) override;

 private:
  std::vector<double> taus_;
  ItemFailures* const failures_;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_POSITIONAL_SYMBOLIC_H_

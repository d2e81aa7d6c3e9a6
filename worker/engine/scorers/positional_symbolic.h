// Scorer "positional_symbolic": how positional and how symbolic each head is at the last token, at
// the slots of the hop path, or at every slot, by swapping keys (swap_scores.h) or blocks of keys
// (block_swaps.h); how much of its attention the query keeps for itself, which the two leave out;
// and on request what swap_accumulator.h and exclusion.h add. What is not asked for costs nothing.
//
// Contents are the rows of the hidden states that enter a layer, so a key before position is
// applied is what moves, with every head's own rotation or ALiBi bias for the slot that it moves
// to. Where positions are added to the embedding they are part of the content, and a logit does not
// depend on the slot: such heads are symbolic by construction, and the scores carry the flag
// "position_in_content". In layers with a window only the keys that the query sees are swapped.
// Logits are capped first where the model caps them.
//
// A value that is NaN or infinite fails the item. A query that sees fewer than two keys, or blocks,
// has no scores.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_POSITIONAL_SYMBOLIC_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_POSITIONAL_SYMBOLIC_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/engine/scorers/scorer.h"
#include "worker/engine/scorers/swap_accumulator.h"

namespace hopscope::engine {

class PositionalSymbolic : public Scorer {
 public:
  enum class Queries { kLast, kHops, kAll };
  enum class Mode { kAuto, kTokens, kBlocks };
  // In the order of the catalog.
  enum class Metric {
    kPositional,
    kSymbolic,
    kSelfMass,
    kPositionalCentred,
    kSymbolicCentred,
    kSwappedMass,
    kContrast,
    kExclusionRhs,
    kLogitVariance,
    kExclusionSlack,
    kKeys,
  };

  struct Settings {
    std::vector<double> taus;
    Queries queries = Queries::kLast;
    Mode mode = Mode::kAuto;
    int64_t blocks = 0;
    std::vector<Metric> metrics;
    SwapExtras extras;
    bool bound = false;  // exclusion_rhs, or what needs it
  };

  // `spec` has every parameter filled in (spec::NormalizeScorerParams). `queries` is the most slots
  // that an item names. `failures` must outlive the scorer.
  PositionalSymbolic(const v1::ScorerSpec& spec, const checkpoint::Architecture& architecture,
                     int64_t items, ItemFailures* failures, int32_t queries);

  bool NeedsAllQueries() const override { return settings_.queries != Queries::kLast; }
  std::unique_ptr<BatchScorer> StartBatch(const ScoringBatch& batch) override;

 private:
  Settings settings_;
  ItemFailures* const failures_;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_POSITIONAL_SYMBOLIC_H_

// Scorer "attention_stats": what the attention of each head looks like, whatever the task.
//
// With A_ij the attention of query i to key j, of each row i:
//   entropy        H_i = -sum_j A_ij ln A_ij, in nats
//   norm_entropy   H_i / ln(keys that query i sees), which is ln(i + 1) without a window; rows that
//                  see one key alone have none
//   sink_mass      A_i0
//   self_mass      A_ii
//   mean_distance  sum_j A_ij (i - j), in slots
//   max_weight     max_j A_ij
//   window_mass    sum of A_ij over the last `window` keys j > i - window, the query's own among
//                  them
// as the mean over all rows, the first among them, and, under the name with "_last", of the last
// row. A value that is NaN or infinite fails the item. Attention is seen a run of rows at a time:
// memory does not grow with the square of the length.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_ATTENTION_STATS_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_ATTENTION_STATS_H_

#include <cstdint>
#include <memory>

#include "worker/engine/scorers/chosen_tables.h"
#include "worker/engine/scorers/scorer.h"

namespace hopscope::engine {

class AttentionStats : public Scorer {
 public:
  // `spec` has every parameter filled in. `failures` must outlive the scorer.
  AttentionStats(const v1::ScorerSpec& spec, const checkpoint::Architecture& architecture,
                 int64_t items, ItemFailures* failures);

  bool NeedsAllQueries() const override;
  std::unique_ptr<BatchScorer> StartBatch(const ScoringBatch& batch) override;

 private:
  const int64_t window_;
  ChosenTables chosen_;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_ATTENTION_STATS_H_

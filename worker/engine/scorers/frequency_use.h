// Scorer "frequency_use": how much each plane of the rotary embedding does in each head, for the
// last token's query. Planes t = 0 .. rotary_dim/2 - 1, the fastest first; l_t(j) is plane t's part
// of the logit against key j (plane_logits.h).
//
//   max_logit       max over keys j, the query's own among them, of l_t(j), unscaled (arXiv
//                   2605.31558, Figs 4C and 8; that it is unscaled is read off the figures)
//   query_norm      mean over tokens of the length of the query's two columns of plane t, and
//   key_norm        the same of the key's (Barbero et al., arXiv 2410.06205)
//   share           l_t(j*) / sum over planes of |l_t(j*)|, j* the key with the largest logit
//   plane_positional, plane_symbolic
//                   the two scores of swap_scores.h for the plane as a head of its own: the softmax
//                   of the model's scale times l_t (arXiv 2511.11579)
//
// In layers with a window only the keys that the query sees count; norms are over all tokens. A
// value that is NaN or infinite fails the item. Below two earlier keys a plane has no scores, and
// where all planes give 0 there is no share.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_FREQUENCY_USE_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_FREQUENCY_USE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/engine/scorers/chosen_tables.h"
#include "worker/engine/scorers/scorer.h"

namespace hopscope::engine {

class FrequencyUse : public Scorer {
 public:
  // `spec` has every parameter filled in; the model rotates. `failures` must outlive the scorer.
  FrequencyUse(const v1::ScorerSpec& spec, const checkpoint::Architecture& architecture,
               int64_t items, ItemFailures* failures);

  bool NeedsAllQueries() const override;
  std::unique_ptr<BatchScorer> StartBatch(const ScoringBatch& batch) override;

 private:
  std::vector<double> taus_;  // one
  ChosenTables chosen_;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_FREQUENCY_USE_H_

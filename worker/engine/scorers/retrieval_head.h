// Scorer "retrieval_head": how much of a needle each head copies into the answer (Wu et al., arXiv
// 2404.15574).
//
// A decoding step is a query whose next token is generated. The head copies at that step where the
// key that it attends to most (the lowest on ties) lies in the needle, and the token there is the
// one that is generated. With S steps, metric
//   retrieval_score  copying steps / tokens of the needle
// so 1 for a head that copies a needle token by token, and above 1 only with more steps than the
// needle has tokens. The paper averages over runs and calls heads above 0.1 retrieval heads.
//
// The paper lets the model generate; here one pass over the whole sequence does it. Steps are the
// slots in the sequence's `queries`, or the last slot where it names none. What follows a step is
// the next token of the sequence, as though the model had generated it; after the last token it is
// what the model would generate, the id with the largest logit (or with `last_token: label` the
// sequence's label, and no step where it has none). In the sequences of tasks that name no needle,
// the needle is the slot that the answer is read from, and the last slot the only step. Sequences
// without a needle, and those without a step, have no value.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_RETRIEVAL_HEAD_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_RETRIEVAL_HEAD_H_

#include <cstdint>
#include <memory>

#include "worker/engine/scorers/scorer.h"

namespace hopscope::engine {

class RetrievalHead : public Scorer {
 public:
  // `spec` has every parameter filled in.
  RetrievalHead(const v1::ScorerSpec& spec, const checkpoint::Architecture& architecture,
                int64_t items);

  bool NeedsAllQueries() const override { return true; }
  std::unique_ptr<BatchScorer> StartBatch(const ScoringBatch& batch) override;

 private:
  const bool label_;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_RETRIEVAL_HEAD_H_

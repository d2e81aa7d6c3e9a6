// Scorer "detectors": how far each head is a previous-token, duplicate-token or induction head.
//
// With T tokens and attention A [T, T], forms "mul" and "abs" compare A with a pattern M of zeros
// and ones, as detect_head of TransformerLens does:
//   previous_token   M[i][i-1] = 1
//   duplicate_token  M[i][j] = 1 where token j = token i, j < i
//   induction        M[i][j] = 1 where token j-1 = token i, 1 <= j <= i
//   mul  sum(A M) / sum(A)
//   abs  1 - sum(|A - M|) / T, not rounded
// exclude_bos leaves out column 0 and exclude_current_token the diagonal: of A in both sums of mul,
// of |A - M| in abs. Where mul has nothing to divide by there is no value.
//
// The other two forms are for sequences that end with a run r of S tokens twice, [..., r, r]; of
// others there is no value.
//   second_copy  mean of A[i][i-1], A[i][i-S] and A[i][i-S+1] over the queries i of the second copy
//                (arXiv 2607.06621)
//   diagonal     mean of the same entries over all queries that have them (TransformerLens'
//                scores on repeated random tokens)
//
// Nothing but the entries named above is read, and a row counts as a sum of 1: the cost grows with
// the length, and with how often tokens repeat.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_DETECTORS_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_DETECTORS_H_

#include <cstdint>
#include <memory>

#include "worker/engine/scorers/chosen_tables.h"
#include "worker/engine/scorers/scorer.h"

namespace hopscope::engine {

enum class DetectorForm { kMul, kAbs, kSecondCopy, kDiagonal };

struct DetectorOptions {
  DetectorForm form = DetectorForm::kMul;
  bool exclude_bos = false;
  bool exclude_current_token = false;
  int64_t repeat_length = 0;  // S; 0: half of the sequence, rounded down
};

class Detectors : public Scorer {
 public:
  // `spec` has every parameter filled in. `failures` must outlive the scorer.
  Detectors(const v1::ScorerSpec& spec, const checkpoint::Architecture& architecture, int64_t items,
            ItemFailures* failures);

  bool NeedsAllQueries() const override { return true; }
  std::unique_ptr<BatchScorer> StartBatch(const ScoringBatch& batch) override;

 private:
  const DetectorOptions options_;
  ChosenTables chosen_;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_DETECTORS_H_

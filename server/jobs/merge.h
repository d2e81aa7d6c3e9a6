// Merging the results of units, and what a cell's merge says about answers and heads.
//
// Units merge one after another in the order of their index: floating-point sums depend on their
// order, so that any other would make a job's numbers depend on who finished first. Counts add up;
// means and sums of squared deviations combine as in Chan, Golub and LeVeque, "Updating Formulae
// and a Pairwise Algorithm for Computing Sample Variances" (1979), eq. 2.1:
//   n = n_a + n_b, delta = mean_b - mean_a,
//   mean = mean_a + delta * n_b / n, M2 = M2_a + M2_b + delta^2 * n_a * n_b / n;
// smallest and largest values, where a metric has them, are those of both sides.
//
// Pure functions; thread-safe.
#ifndef HOPSCOPE_SERVER_JOBS_MERGE_H_
#define HOPSCOPE_SERVER_JOBS_MERGE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "hopscope/v1/dispatch.pb.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::jobs {

// Folds the result of the next unit into the merge of the units before it; an empty message is the
// merge of none. A side without items has no scores; otherwise both must hold the same metrics with
// the same shapes in the same order: INTERNAL where they do not, and then `merge` is unchanged.
absl::Status MergeUnit(const v1::UnitResult& next, v1::UnitResult& merge);

// Whether two results could be merged.
absl::Status CheckMergeable(const v1::UnitResult& a, const v1::UnitResult& b);

// Fills in items, items_failed, correct, items_unlabelled, accuracy, standard_error and Wilson's
// 95 % interval (Wilson, "Probable Inference, the Law of Succession, and Statistical Inference",
// 1927). Without items whose right answer is known, accuracy and interval stay unset.
void SummariseAnswers(int64_t items, int64_t items_failed, int64_t correct,
                      int64_t items_unlabelled, v1::CellResult& result);

// One message per metric, in the order of the merge; `cell` is put into each.
std::vector<v1::HeadScores> SummariseHeads(const v1::UnitResult& merge, const v1::Cell& cell);

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_MERGE_H_

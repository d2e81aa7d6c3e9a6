// Turns a spec into cells and units.
//
// Cells come in the order of five nested loops, the first the outermost: task entries as the spec
// lists them, checkpoints (names and globs in the order of the spec, what each stands for in
// natural order, each checkpoint once a task entry), hop counts, added tokens, seeds. A cell is cut
// into units of equally many items (the last may have fewer): as many as cost about kUnitFlops, so
// that the cut depends on the spec and the configs alone, never on workers.
//
// Thread-safe. Blocks on the file system.
#ifndef HOPSCOPE_SERVER_JOBS_PLANNER_H_
#define HOPSCOPE_SERVER_JOBS_PLANNER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/model_root.h"
#include "hopscope/v1/evaluation.pb.h"
#include "server/jobs/tokens_index.h"
#include "server/store/rows.h"

namespace hopscope::jobs {

// Estimated floating-point operations of a unit.
inline constexpr double kUnitFlops = 1e11;

// The index of uploaded sequences; NOT_FOUND names `field`.
using FindTokens = std::function<absl::StatusOr<std::shared_ptr<const TokensIndex>>(
    const std::string& digest, absl::string_view field)>;

// Knows none.
absl::StatusOr<std::shared_ptr<const TokensIndex>> NoTokens(const std::string& digest,
                                                            absl::string_view field);

struct Plan {
  // Spec, checkpoints in the order in which they first appear, estimate and warnings; no request_id
  // or traceparent.
  store::JobPlanRow job;
  std::vector<store::CellRow> cells;  // without their job
};

// `spec` is normalised (common/spec), `limits` complete. Without `digests`, checkpoints are not
// read to the end and have none. Errors carry the field's path in their metadata: INVALID_ARGUMENT
// for names that leave the model root, for a cell that two task entries share, and for too many
// cells or units; NOT_FOUND for what matches no checkpoint; FAILED_PRECONDITION for unusable
// checkpoints, vocabularies that are too small (VOCABULARY_TOO_SMALL) and sequences beyond the
// position table (SEQUENCE_TOO_LONG).
//
// Tasks of uploaded sequences (common/spec: kTokensTask) have one cell for each checkpoint, whose
// units end before the sequence that would take them beyond kUnitFlops (plan.cuts).
absl::StatusOr<Plan> MakePlan(const v1::EvalJobSpec& spec, const checkpoint::ModelRoot& models,
                              const v1::Limits& limits, bool digests,
                              const FindTokens& find_tokens = NoTokens);

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_PLANNER_H_

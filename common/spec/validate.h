// Checks a job spec completely, short of looking at checkpoints, and fills in its defaults.
#ifndef HOPSCOPE_COMMON_SPEC_VALIDATE_H_
#define HOPSCOPE_COMMON_SPEC_VALIDATE_H_

#include "absl/status/statusor.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::spec {

// Returns the spec with every default filled in: checkpoints and scorers copied into each task,
// every scorer parameter, seeds, window, padding, dtype, tenant. INVALID_ARGUMENT
// (common::InvalidField) names the first wrong field with its path from "spec", its value and what
// is allowed; reasons are those of reasons.h. A limit of 0 means the default (DefaultLimits). The
// result validates to itself, and the same spec always gets the same answer.
absl::StatusOr<v1::EvalJobSpec> Normalize(const v1::EvalJobSpec& spec, const v1::Limits& limits);

}  // namespace hopscope::spec

#endif  // HOPSCOPE_COMMON_SPEC_VALIDATE_H_

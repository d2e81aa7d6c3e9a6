// Whether a scorer's parameters make sense for a model: what can only be said once its config is
// known.
//
// Pure functions; thread-safe.
#ifndef HOPSCOPE_COMMON_SPEC_SCORER_FIT_H_
#define HOPSCOPE_COMMON_SPEC_SCORER_FIT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/architecture.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::spec {

// `scorer` is normalized, `field` its path, `model` what errors call the model. INVALID_ARGUMENT
// (common::InvalidField): VALUE_OUT_OF_RANGE for heads that the model lacks,
// COMBINATION_UNSUPPORTED for what is not defined for it. FAILED_PRECONDITION with reason
// POSITIONS_NOT_ROTARY for a scorer of rotary planes and a model without them.
absl::Status CheckScorerFits(absl::string_view field, const v1::ScorerSpec& scorer,
                             const checkpoint::Architecture& architecture, absl::string_view model);

// What somebody who reads the scorer's results for this model should know; empty: nothing.
std::string ScorerCaveat(const v1::ScorerSpec& scorer,
                         const checkpoint::Architecture& architecture);

}  // namespace hopscope::spec

#endif  // HOPSCOPE_COMMON_SPEC_SCORER_FIT_H_

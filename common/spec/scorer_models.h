// What a scorer asks of the model whose heads it scores.
//
// Pure functions; thread-safe.
#ifndef HOPSCOPE_COMMON_SPEC_SCORER_MODELS_H_
#define HOPSCOPE_COMMON_SPEC_SCORER_MODELS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hopscope::spec {

// What there is to know of a model here.
struct ScoredModel {
  bool rotary = false;  // its positions are rotary
};

// FAILED_PRECONDITION with reason POSITIONS_NOT_ROTARY where scorer `name` cannot be used with the
// model. `field` is the scorer's path.
absl::Status CheckScorerModel(absl::string_view field, absl::string_view name,
                              const ScoredModel& model);

}  // namespace hopscope::spec

#endif  // HOPSCOPE_COMMON_SPEC_SCORER_MODELS_H_

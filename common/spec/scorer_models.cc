#include "common/spec/scorer_models.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace hopscope::spec {

absl::Status CheckScorerModel(absl::string_view field, absl::string_view name,
                              const ScoredModel& model) {
  if (name != "frequency_use" || model.rotary) return absl::OkStatus();
  return common::MakeError(
      absl::StatusCode::kFailedPrecondition, "POSITIONS_NOT_ROTARY",
      absl::StrCat(field, ": scorer ", name,
                   " is about the planes of a rotary position embedding, which the model does not "
                   "have; leave it out for this model"),
      {{"field", std::string(field)},
       {"value", std::string(name)},
       {"allowed", "a model with rotary positions"}});
}

}  // namespace hopscope::spec

#include "worker/engine/scorers/registry.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/spec/reasons.h"
#include "common/spec/scorer_params.h"
#include "common/status.h"
#include "worker/engine/scorers/ablation.h"
#include "worker/engine/scorers/accuracy.h"
#include "worker/engine/scorers/loss.h"
#include "worker/engine/scorers/positional_symbolic.h"

namespace hopscope::engine {
namespace {

struct Entry {
  const char* name;
  absl::StatusOr<std::unique_ptr<Scorer>> (*make)(absl::string_view field,
                                                  const v1::ScorerSpec& spec,
                                                  const checkpoint::Architecture& architecture,
                                                  int64_t items, ItemFailures* failures);
};

constexpr Entry kEntries[] = {
    {"accuracy",
     [](absl::string_view, const v1::ScorerSpec&, const checkpoint::Architecture&, int64_t items,
        ItemFailures* failures) -> absl::StatusOr<std::unique_ptr<Scorer>> {
       return std::make_unique<Accuracy>(items, failures);
     }},
    {"positional_symbolic",
     [](absl::string_view, const v1::ScorerSpec& spec, const checkpoint::Architecture& architecture,
        int64_t items, ItemFailures* failures) -> absl::StatusOr<std::unique_ptr<Scorer>> {
       return std::make_unique<PositionalSymbolic>(spec, architecture, items, failures);
     }},
    {"loss",
     [](absl::string_view, const v1::ScorerSpec&, const checkpoint::Architecture&, int64_t items,
        ItemFailures* failures) -> absl::StatusOr<std::unique_ptr<Scorer>> {
       return std::make_unique<Loss>(items, failures);
     }},
    {"ablation",
     [](absl::string_view field, const v1::ScorerSpec& spec,
        const checkpoint::Architecture& architecture, int64_t items,
        ItemFailures* failures) -> absl::StatusOr<std::unique_ptr<Scorer>> {
       return Ablation::Create(field, spec, architecture, items, failures);
     }},
};

}  // namespace

std::vector<std::string> ScorerNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  return names;
}

absl::StatusOr<std::unique_ptr<Scorer>> MakeScorer(absl::string_view field,
                                                   const v1::ScorerSpec& spec,
                                                   const checkpoint::Architecture& architecture,
                                                   int64_t items, ItemFailures* failures) {
  for (const Entry& entry : kEntries) {
    if (spec.name() != entry.name) continue;
    v1::ScorerSpec complete = spec;
    HOPSCOPE_RETURN_IF_ERROR(spec::NormalizeScorerParams(field, &complete));
    return entry.make(field, complete, architecture, items, failures);
  }
  return common::InvalidField(spec::kNameUnknown, absl::StrCat(field, ".name"), spec.name(),
                              absl::StrCat("one of ", absl::StrJoin(ScorerNames(), ", ")));
}

}  // namespace hopscope::engine

#include "worker/engine/scorers/registry.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/spec/catalog.h"
#include "common/spec/reasons.h"
#include "common/spec/scorer_params.h"
#include "common/status.h"
#include "worker/engine/scorers/accuracy.h"
#include "worker/engine/scorers/accuracy_by_position.h"
#include "worker/engine/scorers/positional_symbolic.h"

namespace hopscope::engine {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<Scorer> (*make)(const v1::ScorerSpec& spec,
                                  const checkpoint::Architecture& architecture, int64_t items,
                                  ItemFailures* failures);
};

constexpr Entry kEntries[] = {
    {"accuracy",
     [](const v1::ScorerSpec&, const checkpoint::Architecture&, int64_t items,
        ItemFailures* failures) -> std::unique_ptr<Scorer> {
       return std::make_unique<Accuracy>(items, failures);
     }},
    {"accuracy_by_position", nullptr},  // made in MakeScorer: it alone needs the window
    {"positional_symbolic",
     [](const v1::ScorerSpec& spec, const checkpoint::Architecture& architecture, int64_t items,
        ItemFailures* failures) -> std::unique_ptr<Scorer> {
       return std::make_unique<PositionalSymbolic>(spec, architecture, items, failures);
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
                                                   int64_t items, ItemFailures* failures,
                                                   const v1::Window& window) {
  if (spec.name() == spec::kAccuracyByPosition) {
    if (window.target() < 1) {
      return common::InvalidField(spec::kUnsupported, absl::StrCat(field, ".name"), spec.name(),
                                  "nothing: these sequences have no window");
    }
    return std::make_unique<AccuracyByPosition>(window, items, failures);
  }
  for (const Entry& entry : kEntries) {
    if (spec.name() != entry.name) continue;
    v1::ScorerSpec complete = spec;
    HOPSCOPE_RETURN_IF_ERROR(spec::NormalizeScorerParams(field, &complete));
    return entry.make(complete, architecture, items, failures);
  }
  return common::InvalidField(spec::kNameUnknown, absl::StrCat(field, ".name"), spec.name(),
                              absl::StrCat("one of ", absl::StrJoin(ScorerNames(), ", ")));
}

}  // namespace hopscope::engine

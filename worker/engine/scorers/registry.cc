#include "worker/engine/scorers/registry.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/spec/reasons.h"
#include "common/spec/scorer_models.h"
#include "common/spec/scorer_params.h"
#include "common/status.h"
#include "worker/engine/model/rotary_table.h"
#include "worker/engine/scorers/accuracy.h"
#include "worker/engine/scorers/attention_stats.h"
#include "worker/engine/scorers/detectors.h"
#include "worker/engine/scorers/frequency_use.h"
#include "worker/engine/scorers/logit_gap.h"
#include "worker/engine/scorers/positional_symbolic.h"
#include "worker/engine/scorers/retrieval_head.h"

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
    {"positional_symbolic",
     [](const v1::ScorerSpec& spec, const checkpoint::Architecture& architecture, int64_t items,
        ItemFailures* failures) -> std::unique_ptr<Scorer> {
       return std::make_unique<PositionalSymbolic>(spec, architecture, items, failures);
     }},
    {"frequency_use",
     [](const v1::ScorerSpec& spec, const checkpoint::Architecture& architecture, int64_t items,
        ItemFailures* failures) -> std::unique_ptr<Scorer> {
       return std::make_unique<FrequencyUse>(spec, architecture, items, failures);
     }},
    {"logit_gap",
     [](const v1::ScorerSpec&, const checkpoint::Architecture& architecture, int64_t items,
        ItemFailures* failures) -> std::unique_ptr<Scorer> {
       return std::make_unique<LogitGap>(architecture, items, failures);
     }},
    {"attention_stats",
     [](const v1::ScorerSpec& spec, const checkpoint::Architecture& architecture, int64_t items,
        ItemFailures* failures) -> std::unique_ptr<Scorer> {
       return std::make_unique<AttentionStats>(spec, architecture, items, failures);
     }},
    {"detectors",
     [](const v1::ScorerSpec& spec, const checkpoint::Architecture& architecture, int64_t items,
        ItemFailures* failures) -> std::unique_ptr<Scorer> {
       return std::make_unique<Detectors>(spec, architecture, items, failures);
     }},
    {"retrieval_head",
     [](const v1::ScorerSpec& spec, const checkpoint::Architecture& architecture, int64_t items,
        ItemFailures*) -> std::unique_ptr<Scorer> {
       return std::make_unique<RetrievalHead>(spec, architecture, items);
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
    HOPSCOPE_RETURN_IF_ERROR(
        spec::CheckScorerModel(field, spec.name(), {.rotary = IsRotary(architecture.position)}));
    return entry.make(complete, architecture, items, failures);
  }
  return common::InvalidField(spec::kNameUnknown, absl::StrCat(field, ".name"), spec.name(),
                              absl::StrCat("one of ", absl::StrJoin(ScorerNames(), ", ")));
}

}  // namespace hopscope::engine

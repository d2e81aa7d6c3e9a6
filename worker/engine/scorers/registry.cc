#include "worker/engine/scorers/registry.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/spec/catalog.h"
#include "common/spec/reasons.h"
#include "common/spec/scorer_fit.h"
#include "common/spec/scorer_params.h"
#include "common/status.h"
#include "worker/engine/scorers/ablation.h"
#include "worker/engine/scorers/accuracy.h"
#include "worker/engine/scorers/accuracy_by_position.h"
#include "worker/engine/scorers/attention_stats.h"
#include "worker/engine/scorers/detectors.h"
#include "worker/engine/scorers/frequency_use.h"
#include "worker/engine/scorers/logit_gap.h"
#include "worker/engine/scorers/loss.h"
#include "worker/engine/scorers/positional_symbolic.h"
#include "worker/engine/scorers/retrieval_head.h"

namespace hopscope::engine {
namespace {

// What a scorer is made from.
struct Request {
  absl::string_view field;     // the scorer's path
  const v1::ScorerSpec& spec;  // every parameter filled in
  const checkpoint::Architecture& architecture;
  int64_t items;
  ItemFailures* failures;
  const ItemShape& shape;
};

using Made = absl::StatusOr<std::unique_ptr<Scorer>>;

Made MakeAccuracyByPosition(const Request& request) {
  if (request.shape.window.target() < 1) {
    return common::InvalidField(spec::kUnsupported, absl::StrCat(request.field, ".name"),
                                request.spec.name(), "nothing: these sequences have no window");
  }
  return std::make_unique<AccuracyByPosition>(request.shape.window, request.items,
                                              request.failures);
}

struct Entry {
  const char* name;
  Made (*make)(const Request& request);
};

constexpr Entry kEntries[] = {
    {"accuracy",
     [](const Request& r) -> Made { return std::make_unique<Accuracy>(r.items, r.failures); }},
    {"accuracy_by_position", MakeAccuracyByPosition},
    {"positional_symbolic",
     [](const Request& r) -> Made {
       return std::make_unique<PositionalSymbolic>(r.spec, r.architecture, r.items, r.failures,
                                                   r.shape.queries);
     }},
    {"loss", [](const Request& r) -> Made { return std::make_unique<Loss>(r.items, r.failures); }},
    {"ablation",
     [](const Request& r) -> Made {
       return Ablation::Create(r.spec, r.architecture, r.items, r.failures);
     }},
    {"frequency_use",
     [](const Request& r) -> Made {
       return std::make_unique<FrequencyUse>(r.spec, r.architecture, r.items, r.failures);
     }},
    {"logit_gap",
     [](const Request& r) -> Made {
       return std::make_unique<LogitGap>(r.architecture, r.items, r.failures);
     }},
    {"attention_stats",
     [](const Request& r) -> Made {
       return std::make_unique<AttentionStats>(r.spec, r.architecture, r.items, r.failures);
     }},
    {"detectors",
     [](const Request& r) -> Made {
       return std::make_unique<Detectors>(r.spec, r.architecture, r.items, r.failures);
     }},
    {"retrieval_head",
     [](const Request& r) -> Made {
       return std::make_unique<RetrievalHead>(r.spec, r.architecture, r.items);
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
                                                   const ItemShape& shape) {
  for (const Entry& entry : kEntries) {
    if (spec.name() != entry.name) continue;
    v1::ScorerSpec complete = spec;
    HOPSCOPE_RETURN_IF_ERROR(spec::NormalizeScorerParams(field, &complete));
    HOPSCOPE_RETURN_IF_ERROR(spec::CheckScorerFits(field, complete, architecture, "the model"));
    return entry.make({.field = field,
                       .spec = complete,
                       .architecture = architecture,
                       .items = items,
                       .failures = failures,
                       .shape = shape});
  }
  return common::InvalidField(spec::kNameUnknown, absl::StrCat(field, ".name"), spec.name(),
                              absl::StrCat("one of ", absl::StrJoin(ScorerNames(), ", ")));
}

}  // namespace hopscope::engine

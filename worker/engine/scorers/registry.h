// The scorers that the engine knows, by name: those of the catalog (common/spec/catalog.h).
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_REGISTRY_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_REGISTRY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/engine/scorers/scorer.h"

namespace hopscope::engine {

// What a unit's items have in common.
struct ItemShape {
  int32_t queries = 1;  // the most slots that an item names as queries (SequenceSource::queries)
  v1::Window window;    // the task's; 0 where the sequences have none
};

// In the order of the catalog.
std::vector<std::string> ScorerNames();

// A scorer for a unit of so many items. Parameters that are left out get their defaults.
// INVALID_ARGUMENT (common::InvalidField, `field` being the scorer's path) where the name or a
// parameter is wrong, or where the scorer needs something of the items that they do not have; what
// CheckScorerFits (common/spec/scorer_fit.h) says. `failures` must outlive the scorer.
absl::StatusOr<std::unique_ptr<Scorer>> MakeScorer(absl::string_view field,
                                                   const v1::ScorerSpec& spec,
                                                   const checkpoint::Architecture& architecture,
                                                   int64_t items, ItemFailures* failures,
                                                   const ItemShape& shape = {});

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_REGISTRY_H_

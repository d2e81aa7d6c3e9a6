#include "server/jobs/score_cost.h"

#include "common/spec/catalog.h"
#include "common/spec/scorer_params.h"

namespace hopscope::jobs {
namespace {

// Exponentials, a square root and a division for each swap of two keys.
constexpr double kFlopsPerSwap = 40;

}  // namespace

double ScorerFlops(const v1::ScorerSpec& scorer, const checkpoint::Architecture& architecture,
                   int64_t tokens) {
  if (scorer.name() != "positional_symbolic") return 0;
  // For each head, the logits of every content at every slot (n x n products of d_head), and every
  // pair of keys swapped, once per temperature.
  const double keys = static_cast<double>(tokens - 1);
  const double heads =
      static_cast<double>(architecture.layers) * static_cast<double>(architecture.heads);
  const double logits = 2 * keys * keys * static_cast<double>(architecture.d_head);
  const double swaps =
      keys * keys / 2 * kFlopsPerSwap * static_cast<double>(spec::ResultParams(scorer).size());
  return heads * (logits + swaps);
}

int64_t ScorerMetrics(const v1::ScorerSpec& scorer) {
  // "accuracy" is part of the cell's own result.
  if (scorer.name() == "accuracy") return 0;
  const v1::ScorerCapability* known = spec::FindScorer(scorer.name());
  return known == nullptr
             ? 0
             : known->metrics_size() * static_cast<int64_t>(spec::ResultParams(scorer).size());
}

}  // namespace hopscope::jobs

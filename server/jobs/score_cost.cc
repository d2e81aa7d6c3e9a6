#include "server/jobs/score_cost.h"

#include "common/checkpoint/cost.h"
#include "common/spec/catalog.h"
#include "common/spec/head_set.h"
#include "common/spec/scorer_params.h"

namespace hopscope::jobs {
namespace {

// Exponentials, a square root and a division for each swap of two keys.
constexpr double kFlopsPerSwap = 40;

// For each replacement a pass from the first layer that it changes. Means of heads' outputs are not
// counted: a worker makes them once for many units.
double AblationFlops(const v1::ScorerSpec& scorer, const checkpoint::Architecture& architecture,
                     int64_t tokens) {
  const auto from_layer = [&](int64_t layer) {
    return checkpoint::ForwardFlops(architecture, tokens, checkpoint::Outputs::kLastPosition,
                                    layer);
  };
  const auto& params = scorer.params().fields();
  const double kinds = params.at("kinds").list_value().values_size();
  double flops = 0;
  if (spec::ScoresEachHead(scorer)) {
    for (int64_t layer = 0; layer < architecture.layers; ++layer) {
      flops += static_cast<double>(architecture.heads) * from_layer(layer);
    }
    return kinds * flops;
  }
  for (const auto& set : params.at("heads").list_value().values()) {
    const auto parts = spec::ParseHeadSet(set.string_value());
    const auto heads = parts.has_value()
                           ? spec::ExpandHeadSet(*parts, architecture.layers, architecture.heads)
                           : std::nullopt;
    // Sets that the model lacks are refused elsewhere.
    flops += from_layer(heads.has_value() ? heads->front().first : 0);
  }
  return kinds * flops;
}

}  // namespace

double ScorerFlops(const v1::ScorerSpec& scorer, const checkpoint::Architecture& architecture,
                   int64_t tokens) {
  if (scorer.name() == "ablation") return AblationFlops(scorer, architecture, tokens);
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

int64_t ScorerValues(const v1::ScorerSpec& scorer, int64_t heads) {
  return ScorerMetrics(scorer) * (spec::ScoresEachHead(scorer) ? heads : 1);
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

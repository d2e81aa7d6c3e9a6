#include "server/jobs/score_cost.h"

#include <string>

#include "common/spec/catalog.h"
#include "common/spec/scorer_params.h"

namespace hopscope::jobs {
namespace {

// Exponentials, a square root and a division for each swap of two keys.
constexpr double kFlopsPerSwap = 40;

// A logarithm for each entry of the attention, and a few sums.
constexpr double kFlopsPerAttention = 30;

double FrequencyUseFlops(const v1::ScorerSpec& scorer, const checkpoint::Architecture& architecture,
                         double tokens) {
  const double planes = static_cast<double>(RotaryPlanes(architecture));
  // Turning the query and multiplying, and the lengths of queries and keys.
  double flops = 16 * tokens * static_cast<double>(architecture.d_head);
  for (const std::string& metric : spec::ResultMetrics(scorer)) {
    if (metric != "plane_positional" && metric != "plane_symbolic") continue;
    // Both come from the same swaps.
    flops += planes * tokens * tokens / 2 * kFlopsPerSwap;
    break;
  }
  return flops;
}

}  // namespace

int64_t RotaryPlanes(const checkpoint::Architecture& architecture) {
  const bool rotary = architecture.position == checkpoint::PositionKind::kRotaryInterleaved ||
                      architecture.position == checkpoint::PositionKind::kRotaryHalfSplit;
  return rotary ? architecture.rotary_dim / 2 : 0;
}

double ScorerFlops(const v1::ScorerSpec& scorer, const checkpoint::Architecture& architecture,
                   int64_t tokens) {
  const double all_heads =
      static_cast<double>(architecture.layers) * static_cast<double>(architecture.heads);
  const double length = static_cast<double>(tokens);
  if (scorer.name() == "frequency_use") {
    return all_heads * FrequencyUseFlops(scorer, architecture, length);
  }
  if (scorer.name() == "logit_gap") {
    return all_heads * 4 * length * static_cast<double>(architecture.d_head);
  }
  if (scorer.name() == "attention_stats") {
    return all_heads * length * length / 2 * kFlopsPerAttention;
  }
  if (scorer.name() != "positional_symbolic") return 0;
  // For each head, the logits of every content at every slot (n x n products of d_head), and every
  // pair of keys swapped, once per temperature.
  const double keys = static_cast<double>(tokens - 1);
  const double logits = 2 * keys * keys * static_cast<double>(architecture.d_head);
  const double swaps =
      keys * keys / 2 * kFlopsPerSwap * static_cast<double>(spec::ResultParams(scorer).size());
  return all_heads * (logits + swaps);
}

int64_t ScorerMetrics(const v1::ScorerSpec& scorer) {
  // "accuracy" is part of the cell's own result.
  if (scorer.name() == "accuracy") return 0;
  return static_cast<int64_t>(spec::ResultMetrics(scorer).size() *
                              spec::ResultParams(scorer).size());
}

int64_t ScorerValues(const v1::ScorerSpec& scorer, const checkpoint::Architecture& architecture) {
  const int64_t planes = scorer.name() == "frequency_use" ? RotaryPlanes(architecture) : 1;
  return ScorerMetrics(scorer) * planes;
}

}  // namespace hopscope::jobs

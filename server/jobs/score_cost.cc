#include "server/jobs/score_cost.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/checkpoint/cost.h"
#include "common/spec/catalog.h"
#include "common/spec/head_set.h"
#include "common/spec/scorer_lengths.h"
#include "common/spec/scorer_params.h"

namespace hopscope::jobs {
namespace {

// For each temperature and swap of two keys, of single keys in the vector loop.
constexpr double kFlopsPerSwap = 40;

// Swaps one at a time: blocks, and whatever is asked for beyond the two scores. Counted as the
// vector loop's work of the same time.
constexpr double kFlopsPerSingleSwap = 400;

std::string Text(const v1::ScorerSpec& scorer, const std::string& param) {
  return scorer.params().fields().at(param).string_value();
}

// Whether one of `metrics` is asked for.
bool Asks(const v1::ScorerSpec& scorer, std::initializer_list<absl::string_view> metrics) {
  const std::vector<std::string> asked = spec::ResultMetrics(scorer);
  return std::any_of(asked.begin(), asked.end(), [&metrics](const std::string& metric) {
    return std::find(metrics.begin(), metrics.end(), metric) != metrics.end();
  });
}

// Cost of one head at one query with n keys before it: constant + linear n + square n^2.
struct QueryFlops {
  double constant = 0;
  double linear = 0;
  double square = 0;
};

QueryFlops FlopsOfQuery(const v1::ScorerSpec& scorer, double d_head) {
  const double results = static_cast<double>(spec::ResultParams(scorer).size());
  const double all_logits = 2 * d_head;  // every content at every slot, times n^2
  QueryFlops flops;
  if (Asks(scorer, {"exclusion_rhs", "exclusion_slack"})) flops.square += all_logits;
  if (Text(scorer, "mode") == "blocks") {
    const double blocks = scorer.params().fields().at("blocks").number_value();
    flops.linear = 2 * blocks * d_head;
    flops.constant = blocks * blocks / 2 * kFlopsPerSingleSwap * results;
    return flops;
  }
  const bool single =
      scorer.params().fields().at("eps").number_value() > 0 ||
      Asks(scorer, {"positional_centred", "symbolic_centred", "swapped_mass", "contrast"});
  flops.square += all_logits + (single ? kFlopsPerSingleSwap : kFlopsPerSwap) * results / 2;
  return flops;
}

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

double PositionalSymbolicFlops(const v1::ScorerSpec& given,
                               const checkpoint::Architecture& architecture, double tokens,
                               int32_t hops) {
  const v1::ScorerSpec scorer = spec::ScorerAtLength(given, static_cast<int64_t>(tokens));
  const QueryFlops query = FlopsOfQuery(scorer, static_cast<double>(architecture.d_head));
  const double n = tokens - 1;
  if (Text(scorer, "queries") == "all") {
    return query.constant * n + query.linear * n * (n + 1) / 2 +
           query.square * n * (n + 1) * (2 * n + 1) / 6;
  }
  // Hops read from slots near the end: counted as if from the last.
  const double queries = Text(scorer, "queries") == "hops" ? hops : 1;
  return queries * (query.constant + query.linear * n + query.square * n * n);
}

// Of one head.
double HeadFlops(const v1::ScorerSpec& scorer, const checkpoint::Architecture& architecture,
                 double tokens, int32_t hops) {
  if (scorer.name() == "positional_symbolic") {
    return PositionalSymbolicFlops(scorer, architecture, tokens, hops);
  }
  if (scorer.name() == "frequency_use") return FrequencyUseFlops(scorer, architecture, tokens);
  if (scorer.name() == "logit_gap") return 4 * tokens * static_cast<double>(architecture.d_head);
  if (scorer.name() == "attention_stats" || scorer.name() == "detectors") {
    return tokens * tokens / 2 * kFlopsPerAttention;
  }
  return 0;
}

}  // namespace

bool NeedsEveryQuery(const v1::ScorerSpec& scorer) {
  if (scorer.name() == "positional_symbolic") return Text(scorer, "queries") != "last";
  return scorer.name() == "frequency_use" || scorer.name() == "attention_stats" ||
         scorer.name() == "detectors" || scorer.name() == "retrieval_head";
}

double ScorerFlops(const v1::ScorerSpec& scorer, const checkpoint::Architecture& architecture,
                   int64_t tokens, int32_t hops) {
  if (scorer.name() == "ablation") return AblationFlops(scorer, architecture, tokens);
  return static_cast<double>(architecture.layers) * static_cast<double>(architecture.heads) *
         HeadFlops(scorer, architecture, static_cast<double>(tokens), hops);
}

int64_t ScorerValues(const v1::ScorerSpec& scorer, const checkpoint::Architecture& architecture,
                     int64_t slots) {
  int64_t values = 1;
  if (spec::ScoresEachHead(scorer)) values = architecture.layers * architecture.heads;
  if (scorer.name() == spec::kAccuracyByPosition) values = slots;
  if (scorer.name() == "frequency_use") values *= std::max<int64_t>(RotaryPlanes(architecture), 1);
  return ScorerMetrics(scorer) * values;
}

int64_t ScorerMetrics(const v1::ScorerSpec& scorer) {
  // "accuracy" is part of the cell's own result.
  if (scorer.name() == "accuracy") return 0;
  return static_cast<int64_t>(spec::ResultMetrics(scorer).size() *
                              spec::ResultParams(scorer).size());
}

}  // namespace hopscope::jobs

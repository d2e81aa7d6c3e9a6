// Which parameters each scorer has.
#include <map>
#include <string>
#include <vector>

#include "common/spec/scorer_params.h"

namespace hopscope::spec {
namespace {

using Type = ScorerParamRule::Type;

std::vector<ScorerParamRule> PositionalSymbolic() {
  return {
      {.name = "taus",
       .description =
           "Temperatures of the swap weights softmax(|D_i - D_j| / tau), D the attention "
           "of the query; one result for each.",
       .type = Type::kPositiveNumbers,
       .max_count = 16,
       .default_numbers = {1e-4}},
      {.name = "queries",
       .description =
           "Slots whose attention is scored: last, the last token; hops, those that read on "
           "the hop path, one value for each hop, the last token first (hopscope-worker "
           "score: the slots that a line names; not for task tokens); all, every slot from 2, "
           "their mean.",
       .choices = {"last", "hops", "all"}},
      {.name = "mode",
       .description =
           "What is swapped: tokens, every pair of keys before the query; blocks, every pair of "
           "runs of keys, with the mean attention of a run in place of a key's; auto, tokens up to "
           "64 keys before the last token and blocks above.",
       .choices = {"auto", "tokens", "blocks"}},
      {.name = "blocks",
       .description =
           "Equal blocks that keys are cut into, where a sequence does not bring blocks of its "
           "own. Leading special tokens are in none, nor is what is left over in front.",
       .type = Type::kInteger,
       .min = 2,
       .max = 256,
       .default_number = 16,
       .idle_param = "mode",
       .idle_value = "tokens"},
      {.name = "eps",
       .description =
           "Smallest norm that a cosine divides by, as in torch.cosine_similarity (1e-8 there); 0: "
           "the exact cosine.",
       .type = Type::kNumber,
       .min = 0,
       .max = 1},
      {.name = "metrics",
       .description = "Which of the scorer's metrics to compute.",
       .type = Type::kChoices,
       .choices = {"positional", "symbolic", "self_mass", "positional_centred", "symbolic_centred",
                   "swapped_mass", "contrast", "exclusion_rhs", "logit_variance", "exclusion_slack",
                   "keys"},
       .default_choices = {"positional", "symbolic", "self_mass"},
       .list = ScorerParamRule::List::kSelectsMetrics},
  };
}

std::vector<ScorerParamRule> Ablation() {
  return {
      {.name = "kinds",
       .description =
           "What replaces a head's output; one result for each. zero: nothing; mean: its mean at "
           "the same slot over 256 sequences of the validation split; positional_only, "
           "symbolic_only: its output with logits that know the slot, or the content, of a key "
           "alone.",
       .type = Type::kChoices,
       .choices = {"zero", "mean", "positional_only", "symbolic_only"},
       .default_choices = {"zero"}},
      {.name = "heads",
       .description = "Heads that are replaced at once: each head by itself, or given sets; one "
                      "result for each set.",
       .type = Type::kHeadSets,
       .max_count = 64},
  };
}

// A list of the scorer's metrics; the default is the first `defaults` of them.
ScorerParamRule MetricsRule(const std::vector<std::string>& metrics, size_t defaults) {
  return {.name = "metrics",
          .description = "Which of the scorer's metrics to compute.",
          .type = Type::kChoices,
          .choices = metrics,
          .default_choices = {metrics.begin(), metrics.begin() + static_cast<int>(defaults)},
          .list = ScorerParamRule::List::kSelectsMetrics};
}

std::vector<ScorerParamRule> FrequencyUse() {
  return {
      {.name = "tau",
       .description = "Temperature of the swap weights of plane_positional and plane_symbolic.",
       .type = Type::kNumber,
       .min = 1e-9,
       .max = 1e9,
       .default_number = 1e-4},
      MetricsRule(
          {"max_logit", "query_norm", "key_norm", "share", "plane_positional", "plane_symbolic"},
          1),
  };
}

std::vector<ScorerParamRule> AttentionStats() {
  return {
      {.name = "window",
       .description = "Keys that window_mass counts: the last so many, the query's own among them.",
       .type = Type::kInteger,
       .min = 1,
       .max = 1'000'000,
       .default_number = 8},
      MetricsRule(
          {"entropy", "norm_entropy", "sink_mass", "self_mass", "mean_distance", "max_weight",
           "window_mass", "entropy_last", "norm_entropy_last", "sink_mass_last", "self_mass_last",
           "mean_distance_last", "max_weight_last", "window_mass_last"},
          14),
  };
}

std::vector<ScorerParamRule> Detectors() {
  return {
      {.name = "form",
       .description =
           "mul, the share of the attention that goes where the pattern is; abs, 1 minus the "
           "distance between the two; second_copy and diagonal, for sequences that end with a run "
           "of tokens twice: the mean attention at the offset, over the queries of the second "
           "copy or over all.",
       .choices = {"mul", "abs", "second_copy", "diagonal"}},
      {.name = "exclude_bos",
       .description = "Leaves out attention to the first token (forms mul and abs).",
       .type = Type::kBool},
      {.name = "exclude_current_token",
       .description = "Leaves out attention of a token to itself (forms mul and abs).",
       .type = Type::kBool},
      {.name = "repeat_length",
       .description =
           "Tokens of the repeated run; 0: half of the sequence, rounded down (forms second_copy "
           "and diagonal).",
       .type = Type::kInteger,
       .min = 0,
       .max = 1'000'000},
      MetricsRule({"previous_token", "duplicate_token", "induction"}, 3),
  };
}

std::vector<ScorerParamRule> RetrievalHead() {
  return {
      {.name = "last_token",
       .description =
           "What is generated after the last token: argmax, what the model says; label, the "
           "right answer.",
       .choices = {"argmax", "label"}},
  };
}

}  // namespace

const std::vector<ScorerParamRule>& ScorerParamRules(absl::string_view scorer) {
  static const auto* const rules = new std::map<std::string, std::vector<ScorerParamRule>>{
      {"ablation", Ablation()},          {"positional_symbolic", PositionalSymbolic()},
      {"frequency_use", FrequencyUse()}, {"attention_stats", AttentionStats()},
      {"detectors", Detectors()},        {"retrieval_head", RetrievalHead()},
  };
  static const auto* const none = new std::vector<ScorerParamRule>;
  const auto found = rules->find(std::string(scorer));
  return found == rules->end() ? *none : found->second;
}

}  // namespace hopscope::spec

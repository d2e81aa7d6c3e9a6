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
       .description = "Slots whose attention is scored: last, the last token.",
       .choices = {"last"}},
      {.name = "mode",
       .description = "What is swapped: tokens, every pair of keys before the query.",
       .choices = {"tokens"}},
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

}  // namespace

const std::vector<ScorerParamRule>& ScorerParamRules(absl::string_view scorer) {
  static const auto* const rules = new std::map<std::string, std::vector<ScorerParamRule>>{
      {"ablation", Ablation()},
      {"positional_symbolic", PositionalSymbolic()},
  };
  static const auto* const none = new std::vector<ScorerParamRule>;
  const auto found = rules->find(std::string(scorer));
  return found == rules->end() ? *none : found->second;
}

}  // namespace hopscope::spec

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

}  // namespace

const std::vector<ScorerParamRule>& ScorerParamRules(absl::string_view scorer) {
  static const auto* const rules = new std::map<std::string, std::vector<ScorerParamRule>>{
      {"positional_symbolic", PositionalSymbolic()},
  };
  static const auto* const none = new std::vector<ScorerParamRule>;
  const auto found = rules->find(std::string(scorer));
  return found == rules->end() ? *none : found->second;
}

}  // namespace hopscope::spec

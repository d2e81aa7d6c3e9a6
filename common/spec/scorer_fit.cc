#include "common/spec/scorer_fit.h"

#include "absl/strings/str_cat.h"
#include "common/spec/head_set.h"
#include "common/spec/reasons.h"
#include "common/spec/scorer_params.h"
#include "common/spec/text.h"
#include "common/status.h"

namespace hopscope::spec {
namespace {

using checkpoint::PositionKind;

// The index among the scorer's kinds of ablation of the first that replaces logits; -1: none.
int FirstLogitKind(const v1::ScorerSpec& scorer) {
  if (scorer.name() != "ablation") return -1;
  const auto& kinds = scorer.params().fields().at("kinds").list_value();
  for (int i = 0; i < kinds.values_size(); ++i) {
    const std::string& kind = kinds.values(i).string_value();
    if (kind == "positional_only" || kind == "symbolic_only") return i;
  }
  return -1;
}

}  // namespace

absl::Status CheckScorerFits(absl::string_view field, const v1::ScorerSpec& scorer,
                             const checkpoint::Architecture& architecture,
                             absl::string_view model) {
  if (scorer.name() == "frequency_use" && !checkpoint::IsRotary(architecture.position)) {
    return common::MakeError(
        absl::StatusCode::kFailedPrecondition, "POSITIONS_NOT_ROTARY",
        absl::StrCat(field,
                     ": scorer frequency_use is about the planes of a rotary position "
                     "embedding, which ",
                     model, " does not have; leave it out for this model"),
        {{"field", std::string(field)},
         {"value", scorer.name()},
         {"allowed", "a model with rotary positions"}});
  }
  for (const ScorerParamRule& rule : ScorerParamRules(scorer.name())) {
    if (rule.type != ScorerParamRule::Type::kHeadSets) continue;
    // No values where it is "each".
    const auto& sets = scorer.params().fields().at(rule.name).list_value();
    for (int i = 0; i < sets.values_size(); ++i) {
      const std::string& text = sets.values(i).string_value();
      const auto set = ParseHeadSet(text);
      if (set.has_value() &&
          ExpandHeadSet(*set, architecture.layers, architecture.heads).has_value()) {
        continue;
      }
      return common::InvalidField(
          kOutOfRange, absl::StrCat(field, ".params.", rule.name, "[", i, "]"), Quoted(text),
          absl::StrCat("heads that ", model, " has: layers 0 to ", architecture.layers - 1,
                       ", in each of them heads 0 to ", architecture.heads - 1));
    }
  }
  const int kind = FirstLogitKind(scorer);
  if (kind >= 0 && architecture.attention_softcap > 0) {
    return common::InvalidField(
        kUnsupported, absl::StrCat(field, ".params.kinds[", kind, "]"),
        scorer.params().fields().at("kinds").list_value().values(kind).string_value(),
        absl::StrCat(
            "zero or mean for ", model,
            ", which has a soft cap on attention logits: it is not linear, so logits have no "
            "closed form of their mean over contents or "
            "slots"));
  }
  return absl::OkStatus();
}

std::string ScorerCaveat(const v1::ScorerSpec& scorer,
                         const checkpoint::Architecture& architecture) {
  if (FirstLogitKind(scorer) < 0) return "";
  if (architecture.position == PositionKind::kLearned) {
    return "adds positions to the embedding, where they are part of the content: in the ablation "
           "symbolic_only changes nothing, and positional_only makes attention uniform but for the "
           "query itself";
  }
  if (architecture.position == PositionKind::kNone) {
    return "has no positions: in the ablation symbolic_only changes nothing, and positional_only "
           "makes attention uniform but for the query itself";
  }
  return "";
}

}  // namespace hopscope::spec

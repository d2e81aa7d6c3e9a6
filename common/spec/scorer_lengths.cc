#include "common/spec/scorer_lengths.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/spec/catalog.h"
#include "common/spec/reasons.h"
#include "common/status.h"

namespace hopscope::spec {
namespace {

// Empty where the scorer has no such parameter.
std::string Text(const v1::ScorerSpec& scorer, absl::string_view param) {
  const auto found = scorer.params().fields().find(std::string(param));
  return found == scorer.params().fields().end() ? "" : found->second.string_value();
}

}  // namespace

v1::ScorerSpec ScorerAtLength(const v1::ScorerSpec& scorer, int64_t tokens) {
  v1::ScorerSpec decided = scorer;
  if (scorer.name() == "positional_symbolic" && Text(scorer, "mode") == "auto") {
    (*decided.mutable_params()->mutable_fields())["mode"].set_string_value(
        tokens - 1 <= kAutoTokenKeys ? "tokens" : "blocks");
  }
  return decided;
}

v1::TaskSpec TaskAtLength(const v1::TaskSpec& task, int32_t added_tokens) {
  v1::TaskSpec decided = task;
  // Uploaded sequences have lengths of their own: what depends on one is decided for each.
  if (task.task() == kTokensTask) return decided;
  for (v1::ScorerSpec& scorer : *decided.mutable_scorers()) {
    scorer = ScorerAtLength(scorer, SequenceLength(task, added_tokens));
  }
  return decided;
}

absl::Status CheckScorerLength(absl::string_view field, const v1::ScorerSpec& scorer,
                               int64_t tokens) {
  const int64_t keys = tokens - 1;
  if (scorer.name() != "positional_symbolic" || Text(scorer, "queries") != "all" ||
      keys <= kAllQueriesKeys) {
    return absl::OkStatus();
  }
  const double n = static_cast<double>(keys);
  return common::InvalidField(
      kLimitExceeded, absl::StrCat(field, ".params.queries"), "\"all\"",
      absl::StrFormat("last or hops: sequences of %d tokens have %d queries with about n^3 / 6 = "
                      "%.2g pairs of keys for each head; all is for at most %d tokens",
                      tokens, keys - 1, n * n * n / 6, kAllQueriesKeys + 1));
}

}  // namespace hopscope::spec

// What a scorer does with sequences of one length.
//
// Pure functions; thread-safe.
#ifndef HOPSCOPE_COMMON_SPEC_SCORER_LENGTHS_H_
#define HOPSCOPE_COMMON_SPEC_SCORER_LENGTHS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::spec {

// Keys before the last token up to which positional_symbolic's mode "auto" swaps single keys.
inline constexpr int64_t kAutoTokenKeys = 64;

// Keys before the last token up to which every query may be scored: the swaps of a head grow with
// the third power of them.
inline constexpr int64_t kAllQueriesKeys = 512;

// The scorer, normalized, with everything decided that the length decides: mode "auto" becomes
// "tokens" or "blocks". Results are reported under the parameters of this.
v1::ScorerSpec ScorerAtLength(const v1::ScorerSpec& scorer, int64_t tokens);

// The task with its scorers as they are for sequences with so many added tokens. Task "tokens" is
// left as it is: each of its sequences has a length of its own.
v1::TaskSpec TaskAtLength(const v1::TaskSpec& task, int32_t added_tokens);

// Refuses what would cost too much at this length. INVALID_ARGUMENT with the cost (LIMIT_EXCEEDED);
// `field` is the path of the scorer, normalized.
absl::Status CheckScorerLength(absl::string_view field, const v1::ScorerSpec& scorer,
                               int64_t tokens);

}  // namespace hopscope::spec

#endif  // HOPSCOPE_COMMON_SPEC_SCORER_LENGTHS_H_

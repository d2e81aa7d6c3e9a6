// What can be asked for by name: tasks and scorers, with their parameters and limits. The server
// checks specs against this and shows it as capabilities; the engine implements exactly these names
// (a test compares the two).
//
// Static data; thread-safe.
#ifndef HOPSCOPE_COMMON_SPEC_CATALOG_H_
#define HOPSCOPE_COMMON_SPEC_CATALOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::spec {

// The task whose sequences are the user's own.
inline constexpr absl::string_view kTokensTask = "tokens";

// The scorer whose steps are the slots of answers.
inline constexpr absl::string_view kAccuracyByPosition = "accuracy_by_position";

// Task "number": integers that any window has, and letters.
inline constexpr int32_t kNumberIntegers = 16;
inline constexpr int32_t kNumberLetters = 120;
// Task "index".
inline constexpr int32_t kIndexSymbols = 32;
// Tasks "retrieval" and "partial_induction".
inline constexpr int32_t kPairSymbols = 32;
inline constexpr int32_t kPairAttributes = 8;

// In the order in which capabilities list them.
const std::vector<v1::TaskCapability>& Tasks();
const std::vector<v1::ScorerCapability>& Scorers();

// Null where there is no such name.
const v1::TaskCapability* FindTask(absl::string_view name);
const v1::ScorerCapability* FindScorer(absl::string_view name);

// The metrics that a scorer, normalized (scorer_params.h), yields, in the order of its capability:
// those that a parameter selects, or all. Empty where the scorer is unknown.
std::vector<std::string> ResultMetrics(const v1::ScorerSpec& scorer);

// Token ids that a task uses in such a window, padding id 0 included; 0 where it is not a task that
// makes its sequences.
int32_t VocabSize(absl::string_view task, const v1::Window& window);

// Limits unless a server is told otherwise.
const v1::Limits& DefaultLimits();

// The same limits with the default in every field that is 0.
v1::Limits CompleteLimits(const v1::Limits& limits);

// Tokens of a sequence: added tokens, window and the query token.
int64_t SequenceLength(const v1::TaskSpec& task, int32_t added_tokens);

}  // namespace hopscope::spec

#endif  // HOPSCOPE_COMMON_SPEC_CATALOG_H_

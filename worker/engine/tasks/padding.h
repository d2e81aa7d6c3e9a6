// The tokens in front of a window.
//
// They never touch the hop path: they are drawn from tokens that keep the answer unique ("free"
// ones). They are laid from the window outwards, so that the padding of a shorter sequence is the
// suffix of that of a longer one.
#ifndef HOPSCOPE_WORKER_ENGINE_TASKS_PADDING_H_
#define HOPSCOPE_WORKER_ENGINE_TASKS_PADDING_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "hopscope/v1/dispatch.pb.h"
#include "worker/engine/tasks/sequence_key.h"

namespace hopscope::engine {

// What may stand in front of one window.
struct FreeTokens {
  std::vector<int32_t> answers;  // tokens of the kind that answers have, ascending
  std::vector<int32_t>
      instructions;  // tokens of the kind that hop paths have, ascending; may be empty
  std::vector<int32_t>
      window;  // tokens of the window off the hop path, in slot order; may be empty
};

// Added tokens of an item, in the order of the sequence [added_tokens]. With d = 1 for the token
// next to the window, 2 for the one before, and so on:
//   random    token d is answers[Below(size)], draw d of the item's kRandomPadding stream
//   pairs     token d is instructions[Below(size)], draw d of its kPairsPadding stream
//   window    token d is window[size-1 - (d-1) mod size]: the list, repeated to the left
//   constant  every token is answers[Below(size)], draw 1 of its kConstantPadding stream
// `spec` has passed spec::CheckSequenceSpec.
std::vector<int32_t> MakePadding(const FreeTokens& free, TaskNumber task,
                                 const v1::SequenceSpec& spec, int64_t item);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_TASKS_PADDING_H_

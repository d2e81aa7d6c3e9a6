// Which random stream a sequence is drawn from.
//
// Layout of the stream keys (see common/rng/random_stream.h), fixed for ever:
//   seed               the spec's seed
//   domain             what is drawn: window, order of items, padding
//   low   bits  0-39   index: of the item, or of the block of items (kItemOrder)
//         bits 40-47   hop count
//         bits 48-55   number of the task: 1 number, 2 letter, 3 index, 4 retrieval,
//                      5 partial_induction
//         bits 56-63   number of the split: 1 train, 2 validation, 3 evaluation
//   high  bits  0-11   target slots of the window
//         bits 12-23   pre-target slots of the window
// The fields do not overlap and nothing is hashed, so that keys are equal only where every field
// is: the streams of two splits, tasks, hop counts, windows or items never meet. Added tokens are
// left out, and the padding is in the domain of the padding's own streams alone: the window is the
// same at every length.
#ifndef HOPSCOPE_WORKER_ENGINE_TASKS_SEQUENCE_KEY_H_
#define HOPSCOPE_WORKER_ENGINE_TASKS_SEQUENCE_KEY_H_

#include <cstdint>

#include "common/rng/random_stream.h"
#include "hopscope/v1/dispatch.pb.h"

namespace hopscope::engine {

// Item indices are below this.
inline constexpr int64_t kMaxItems = int64_t{1} << 40;

// Numbers of the tasks in keys: never change or reuse one.
enum class TaskNumber : uint8_t {
  kNumber = 1,
  kLetter = 2,
  kIndex = 3,
  kRetrieval = 4,
  kPartialInduction = 5
};

// `spec` has passed spec::CheckSequenceSpec; `index` is in 0 .. kMaxItems-1.
rng::StreamKey SequenceKey(rng::Domain domain, TaskNumber task, const v1::SequenceSpec& spec,
                           int64_t index);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_TASKS_SEQUENCE_KEY_H_

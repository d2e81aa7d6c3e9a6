// Task "number": an integer v at a slot points v slots back; the answer is the first letter on the
// path from the last token (arXiv 2605.31558, Number task). A head that solves it must attend by
// position.
//
// Token ids: 0 padding of batches; integers 1..16 are ids 1..16; letters a..z, then aa..dp (94
// bigrams in lexicographic order), are ids 17..136. A window of more than 16 slots (target +
// pre_target = n) needs pointers up to n: integers 17..n are ids 137..120+n, behind the others, so
// that sequences of smaller windows and the checkpoints for them stay what they were.
//
// After the path, the window's stream gives: a letter for each target slot (Below(120)); then for
// each later slot i, in order and the query included, the slot that it points to (Below(i)), so
// that integers off the path are valid pointers too. The answer and the path's pointers then
// overwrite theirs.
#ifndef HOPSCOPE_WORKER_ENGINE_TASKS_NUMBER_H_
#define HOPSCOPE_WORKER_ENGINE_TASKS_NUMBER_H_

#include <string>

#include "worker/engine/tasks/task.h"

namespace hopscope::engine {

class NumberTask : public Task {
 public:
  NumberTask();
  std::string TokenText(int32_t id) const override;

 protected:
  void FillWindow(const v1::SequenceSpec& spec, rng::RandomStream* stream,
                  Sequence* window) const override;
  FreeTokens FindFreeTokens(const Sequence& window) const override;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_TASKS_NUMBER_H_

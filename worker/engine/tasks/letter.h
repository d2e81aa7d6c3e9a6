// Task "letter": a pair (x, y) points to the earlier pair that begins with y; the answer is the
// first pair with an integer on the path from the last token (arXiv 2605.31558, Letter task). A
// head that solves it must attend by content.
//
// Token ids: 0 padding of batches; (letter, integer) pairs with letters a..h and integers 1..8 are
// ids 1..64, letter-major; (letter, letter) pairs are ids 65..128, first-letter-major.
//
// The path's letters: hops-1 different ones other than the answer's, then the answer's. Every other
// pair begins, and every other (letter, letter) pair ends, with a letter that is none of those
// ("free"), so that each letter of the path begins one pair of the whole sequence. After the path,
// the window's stream gives: the path's letters (the 7 letters but the answer's in ascending order,
// a Fisher-Yates shuffle from the front, stopped after hops-1 steps as for slots in task.h); then
// for each slot in order, the query included, its first letter (among the free ones in ascending
// order) and its second letter (likewise) or integer (1 + Below(8)). The path and the answer then
// overwrite theirs: a path slot keeps its place, begins with the letter that leads to it (the
// query: its own free letter) and ends with the next letter of the path.
#ifndef HOPSCOPE_WORKER_ENGINE_TASKS_LETTER_H_
#define HOPSCOPE_WORKER_ENGINE_TASKS_LETTER_H_

#include <string>

#include "worker/engine/tasks/task.h"

namespace hopscope::engine {

class LetterTask : public Task {
 public:
  LetterTask();
  std::string TokenText(int32_t id) const override;

 protected:
  void FillWindow(const v1::SequenceSpec& spec, rng::RandomStream* stream,
                  Sequence* window) const override;
  FreeTokens FindFreeTokens(const Sequence& window) const override;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_TASKS_LETTER_H_

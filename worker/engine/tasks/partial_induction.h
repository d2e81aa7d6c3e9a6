// Task "partial_induction": the symbol that the query names is in two or three pairs of the window,
// and the answer is the attribute in the last of them (arXiv 2511.11579, Partial Induction). A head
// that solves it must attend by content and by position.
//
// Token ids: pair_tokens.h. Answers are attribute tokens, which stand in no sequence. Since an
// earlier pair must be there, answers stand in slots 1 .. n-1.
//
// After the path, the window's stream gives: the queried symbol q (Below(32)); how many pairs have
// it, with the answer's at slot t (2 + Below(2); 2, without a draw, where t is 1); the slots of the
// earlier ones (a Fisher-Yates shuffle of the slots 0 .. t-1 in ascending order, from the front,
// stopped after one step for each, step k swapping with k + Below(rest)); for each slot in order a
// symbol (Below(31), counted among the symbols but q) and an attribute (Below(8)); for each earlier
// pair of q, in slot order, its attribute (Below(7), counted among the attributes but the answer's,
// so that the last pair alone gives the answer). The pairs of q then overwrite theirs, and the
// query is q. Tokens in front never have that symbol.
#ifndef HOPSCOPE_WORKER_ENGINE_TASKS_PARTIAL_INDUCTION_H_
#define HOPSCOPE_WORKER_ENGINE_TASKS_PARTIAL_INDUCTION_H_

#include <string>

#include "worker/engine/tasks/task.h"

namespace hopscope::engine {

class PartialInductionTask : public Task {
 public:
  PartialInductionTask();
  std::string TokenText(int32_t id) const override;

 protected:
  void FillWindow(const v1::SequenceSpec& spec, rng::RandomStream* stream,
                  Sequence* window) const override;
  FreeTokens FindFreeTokens(const Sequence& window) const override;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_TASKS_PARTIAL_INDUCTION_H_

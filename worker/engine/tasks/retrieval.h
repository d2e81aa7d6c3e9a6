// Task "retrieval": the window holds pairs of different symbols, each with an attribute; the query
// is one of the symbols, and the answer is its attribute (arXiv 2511.11579, Information Retrieval).
// A head that solves it must attend by content.
//
// Token ids: pair_tokens.h. Answers are attribute tokens, which stand in no sequence.
//
// After the path, the window's stream gives the symbols of the slots, in their order: a
// Fisher-Yates shuffle of the 32 symbols in ascending order, from the front, stopped after as many
// steps as the window has slots (step k swapping with k + Below(rest)); then an attribute for each
// slot (Below(8)). The answer then overwrites the attribute of its slot; the query is that slot's
// symbol. Tokens in front never have that symbol.
#ifndef HOPSCOPE_WORKER_ENGINE_TASKS_RETRIEVAL_H_
#define HOPSCOPE_WORKER_ENGINE_TASKS_RETRIEVAL_H_

#include <string>

#include "worker/engine/tasks/task.h"

namespace hopscope::engine {

class RetrievalTask : public Task {
 public:
  RetrievalTask();
  std::string TokenText(int32_t id) const override;

 protected:
  void FillWindow(const v1::SequenceSpec& spec, rng::RandomStream* stream,
                  Sequence* window) const override;
  FreeTokens FindFreeTokens(const Sequence& window) const override;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_TASKS_RETRIEVAL_H_

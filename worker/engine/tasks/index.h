// Task "index": the query names a slot of the window, and the answer is the symbol there
// (arXiv 2511.11579, Index). A head that solves it must attend by position.
//
// Token ids: 0 padding of batches; symbols a..z and aa..af are ids 1..32; the position tokens
// p1..pn of a window of n slots are ids 33..32+n. pj names the window's j-th slot, from 1: n + 1 -
// j slots before the query, whatever was added in front.
//
// After the path, the window's stream gives a symbol for each slot in order (Below(32)). The answer
// then overwrites its own; the query is the position token of the answer's slot.
#ifndef HOPSCOPE_WORKER_ENGINE_TASKS_INDEX_H_
#define HOPSCOPE_WORKER_ENGINE_TASKS_INDEX_H_

#include <string>

#include "worker/engine/tasks/task.h"

namespace hopscope::engine {

class IndexTask : public Task {
 public:
  IndexTask();
  std::string TokenText(int32_t id) const override;

 protected:
  void FillWindow(const v1::SequenceSpec& spec, rng::RandomStream* stream,
                  Sequence* window) const override;
  FreeTokens FindFreeTokens(const Sequence& window) const override;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_TASKS_INDEX_H_

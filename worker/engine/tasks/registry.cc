#include "worker/engine/tasks/registry.h"

#include "worker/engine/tasks/index.h"
#include "worker/engine/tasks/letter.h"
#include "worker/engine/tasks/number.h"
#include "worker/engine/tasks/partial_induction.h"
#include "worker/engine/tasks/retrieval.h"

namespace hopscope::engine {

const std::vector<const Task*>& Tasks() {
  static const auto* const tasks = new std::vector<const Task*>{
      new NumberTask, new LetterTask, new IndexTask, new RetrievalTask, new PartialInductionTask};
  return *tasks;
}

const Task* FindTask(absl::string_view name) {
  for (const Task* task : Tasks()) {
    if (task->name() == name) return task;
  }
  return nullptr;
}

}  // namespace hopscope::engine

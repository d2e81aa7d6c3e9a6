// The tasks whose sequences the engine makes, by name: those of the catalog (common/spec/catalog.h)
// but "tokens".
//
// Tasks live as long as the process; thread-safe.
#ifndef HOPSCOPE_WORKER_ENGINE_TASKS_REGISTRY_H_
#define HOPSCOPE_WORKER_ENGINE_TASKS_REGISTRY_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "worker/engine/tasks/task.h"

namespace hopscope::engine {

// In the order of the catalog.
const std::vector<const Task*>& Tasks();

// Null where there is no such task.
const Task* FindTask(absl::string_view name);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_TASKS_REGISTRY_H_

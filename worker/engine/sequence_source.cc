#include "worker/engine/sequence_source.h"

#include <algorithm>
#include <utility>

#include "common/spec/reasons.h"
#include "common/spec/sequences.h"
#include "common/status.h"
#include "worker/engine/tasks/registry.h"

namespace hopscope::engine {

absl::StatusOr<TaskSource> TaskSource::Create(const v1::SequenceSpec& spec, int64_t first_item,
                                              int64_t items) {
  const Task* const task = FindTask(spec.task());
  if (task == nullptr) {
    return common::InvalidField(spec::kNameUnknown, "sequences.task", spec.task(),
                                "a task that this engine knows");
  }
  HOPSCOPE_RETURN_IF_ERROR(spec::CheckSequenceSpec(spec, "sequences"));
  return TaskSource(task, spec, first_item, items);
}

TaskSource::TaskSource(const Task* task, v1::SequenceSpec spec, int64_t first_item, int64_t items)
    : task_(task),
      spec_(std::move(spec)),
      first_item_(first_item),
      items_(items),
      tokens_(int64_t{spec_.added_tokens()} + spec_.window().target() +
              spec_.window().pre_target() + 1) {}

absl::StatusOr<std::vector<Sequence>> TaskSource::Make(absl::Span<const int64_t> items) const {
  std::vector<Sequence> sequences;
  sequences.reserve(items.size());
  // Runs of neighbours are cheaper made together.
  for (size_t begin = 0; begin < items.size();) {
    size_t end = begin + 1;
    while (end < items.size() && items[end] == items[end - 1] + 1) ++end;
    HOPSCOPE_ASSIGN_OR_RETURN(
        std::vector<Sequence> run,
        task_->MakeRange(spec_, first_item_ + items[begin], static_cast<int64_t>(end - begin)));
    for (Sequence& sequence : run) sequences.push_back(std::move(sequence));
    begin = end;
  }
  return sequences;
}

Sequence SequenceOf(const tokens::TokensLine& line) {
  Sequence sequence;
  sequence.tokens = line.tokens;
  sequence.label = line.label.value_or(-1);
  sequence.queries = line.queries;
  sequence.blocks = line.blocks;
  sequence.needle = line.needle;
  return sequence;
}

int32_t ListSource::queries() const {
  size_t most = 0;
  for (const Sequence& sequence : sequences_) most = std::max(most, QuerySlots(sequence).size());
  return static_cast<int32_t>(most);
}

absl::StatusOr<std::vector<Sequence>> ListSource::Make(absl::Span<const int64_t> items) const {
  std::vector<Sequence> sequences;
  sequences.reserve(items.size());
  for (const int64_t item : items) sequences.push_back(sequences_[item]);
  return sequences;
}

}  // namespace hopscope::engine

#include "worker/engine/tasks/task.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/spec/catalog.h"
#include "common/spec/reasons.h"
#include "common/spec/sequences.h"
#include "common/status.h"

namespace hopscope::engine {
namespace {

// The slots that read, the query first [hops].
std::vector<int32_t> DrawPath(const v1::SequenceSpec& spec, rng::RandomStream* stream) {
  const v1::Window& window = spec.window();
  std::vector<int32_t> slots(window.pre_target());
  std::iota(slots.begin(), slots.end(), window.target());
  const size_t steps = spec.hops() - 1;
  for (size_t k = 0; k < steps; ++k) {
    std::swap(slots[k], slots[k + stream->Below(static_cast<uint32_t>(slots.size() - k))]);
  }
  slots.resize(steps);
  slots.push_back(window.target() + window.pre_target());
  std::sort(slots.begin(), slots.end(), std::greater<>());
  return slots;
}

// Moves a window behind added tokens.
void Prepend(std::vector<int32_t> added, Sequence* sequence) {
  const auto shift = static_cast<int32_t>(added.size());
  added.insert(added.end(), sequence->tokens.begin(), sequence->tokens.end());
  sequence->tokens = std::move(added);
  for (int32_t& slot : sequence->path) slot += shift;
  sequence->target += shift;
}

}  // namespace

Task::Task(absl::string_view name, TaskNumber number, int32_t first_answer, int32_t answer_values,
           int32_t first_answer_slot)
    : name_(name),
      number_(number),
      first_answer_(first_answer),
      answer_values_(answer_values),
      first_answer_slot_(first_answer_slot) {}

int32_t Task::vocab_size(const v1::Window& window) const { return spec::VocabSize(name_, window); }

int64_t Task::BlockSize(const v1::Window& window) const {
  return int64_t{window.target() - first_answer_slot_} * answer_values_;
}

absl::StatusOr<Sequence> Task::Make(const v1::SequenceSpec& spec, int64_t item) const {
  HOPSCOPE_ASSIGN_OR_RETURN(std::vector<Sequence> sequences, MakeRange(spec, item, 1));
  return std::move(sequences.front());
}

absl::StatusOr<std::vector<Sequence>> Task::MakeRange(const v1::SequenceSpec& spec,
                                                      int64_t first_item, int64_t count) const {
  HOPSCOPE_RETURN_IF_ERROR(spec::CheckSequenceSpec(spec, "sequences"));
  if (spec.task() != name_) {
    return common::InvalidField(spec::kUnsupported, "sequences.task", spec.task(),
                                absl::StrCat("this is task ", name_));
  }
  if (first_item < 0 || count < 0 || first_item >= kMaxItems || count > kMaxItems - first_item) {
    return common::InvalidField(spec::kOutOfRange, "items",
                                absl::StrCat(count, " from ", first_item),
                                absl::StrCat("items are 0 to ", kMaxItems - 1));
  }
  const int64_t block_size = BlockSize(spec.window());
  int64_t block = -1;
  std::vector<uint32_t> order;
  std::vector<Sequence> sequences;
  sequences.reserve(count);
  for (int64_t item = first_item; item < first_item + count; ++item) {
    if (item / block_size != block) {
      block = item / block_size;
      order = rng::Permutation(SequenceKey(rng::Domain::kItemOrder, number_, spec, block),
                               static_cast<uint32_t>(block_size));
    }
    const auto combination = static_cast<int32_t>(order[item % block_size]);
    rng::RandomStream stream(SequenceKey(rng::Domain::kWindow, number_, spec, item));
    Sequence sequence;
    sequence.tokens.resize(spec.window().target() + spec.window().pre_target() + 1);
    sequence.label = first_answer_ + combination % answer_values_;
    sequence.target = first_answer_slot_ + combination / answer_values_;
    sequence.path = DrawPath(spec, &stream);
    FillWindow(spec, &stream, &sequence);
    if (spec.added_tokens() > 0) {
      Prepend(MakePadding(FindFreeTokens(sequence), number_, spec, item), &sequence);
    }
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

}  // namespace hopscope::engine

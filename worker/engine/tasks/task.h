// A synthetic task: makes sequences with one right answer, from an index alone.
//
// Contract
// 1. A sequence is a pure function of the SequenceSpec and the item index, on any machine, in any
// order.
// 2. The window (and with it label and path) does not depend on padding and added tokens; a
// sequence with more added
//    tokens ends with the one that has fewer.
// 3. Answer slot and answer value are balanced: every block of BlockSize() items of a hop count
// holds each combination
//    of the two exactly once, in an order of its own.
// 4. The path from the last token is unique, whatever was added in front.
//
// Layout of a sequence (arXiv 2605.31558): added tokens, then the window: slots 0 ..
// target-1 hold answers, the next pre_target slots instructions; last the query token.
//
// How an item is made. Item i is number i mod n of block i / n, n = BlockSize(); its combination is
// c = Permutation(stream kItemOrder of the block, n)[i mod n]: answer slot f + c / values, answer
// value c mod values, where f is the first target slot that the task's answers can stand at. Then
// the item's kWindow stream gives: first the hop path (hops-1 of the pre-target slots: a
// Fisher-Yates shuffle of the slots in ascending order, from the front, stopped after hops-1 steps,
// step k swapping with k + Below(rest)), then what the task's own header says. Keys:
// sequence_key.h; added tokens: padding.h.
//
// Tasks have no state; thread-safe.
#ifndef HOPSCOPE_WORKER_ENGINE_TASKS_TASK_H_
#define HOPSCOPE_WORKER_ENGINE_TASKS_TASK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rng/random_stream.h"
#include "hopscope/v1/dispatch.pb.h"
#include "worker/engine/tasks/padding.h"
#include "worker/engine/tasks/sequence_key.h"

namespace hopscope::engine {

// Slots are positions in `tokens`, from 0, added tokens included.
struct Sequence {
  std::vector<int32_t> tokens;  // token ids [added_tokens + target + pre_target + 1]
  int32_t label = 0;            // token id of the answer
  // Slots that read, one a hop [hops]: the query slot, then the others in the order of the path
  // (descending). Each reads the next one; the last reads the target slot.
  std::vector<int32_t> path;
  int32_t target = 0;  // slot that the answer is read from
  // What the user's own sequences may say besides, and tasks where it fits them.
  std::vector<int32_t> queries;                     // slots whose attention is of interest, rising
  std::vector<std::pair<int32_t, int32_t>> blocks;  // runs of slots [begin, end), rising
  std::optional<std::pair<int32_t, int32_t>> needle;  // the slots that hold the answer [begin, end)
};

// The slots whose attention the sequence names: those of its hop path, or the user's own queries.
inline const std::vector<int32_t>& QuerySlots(const Sequence& sequence) {
  return sequence.path.empty() ? sequence.queries : sequence.path;
}

class Task {
 public:
  virtual ~Task() = default;

  // As in the catalog (common/spec/catalog.h).
  const std::string& name() const { return name_; }

  // Token ids are 0 .. vocab_size-1; 0 is padding of batches and never in a sequence.
  int32_t vocab_size(const v1::Window& window) const;

  // A token for people: "12", "aa", "c5", "gd"; "<pad>" for 0; "<ID?>" with the number for an id
  // that no window has.
  virtual std::string TokenText(int32_t id) const = 0;

  // Items in which every combination of answer slot and answer value occurs once.
  int64_t BlockSize(const v1::Window& window) const;

  // One item. INVALID_ARGUMENT names the field of the spec that is wrong, from "sequences", or the
  // item.
  absl::StatusOr<Sequence> Make(const v1::SequenceSpec& spec, int64_t item) const;

  // Items first_item .. first_item + count - 1: the same as Make, but cheaper than one by one (the
  // order of a block is drawn once).
  absl::StatusOr<std::vector<Sequence>> MakeRange(const v1::SequenceSpec& spec, int64_t first_item,
                                                  int64_t count) const;

 protected:
  // `name` must be in the catalog. `answer_values` tokens, from id `first_answer`, can be answers.
  // Answers stand in the target slots from `first_answer_slot` on.
  Task(absl::string_view name, TaskNumber number, int32_t first_answer, int32_t answer_values,
       int32_t first_answer_slot = 0);

  // Draws the window's tokens and the query. `window` comes with label, path and target filled in,
  // and with tokens of 0 for every slot.
  virtual void FillWindow(const v1::SequenceSpec& spec, rng::RandomStream* stream,
                          Sequence* window) const = 0;

  // Tokens that may stand in front of a window.
  virtual FreeTokens FindFreeTokens(const Sequence& window) const = 0;

 private:
  const std::string name_;
  const TaskNumber number_;
  const int32_t first_answer_;
  const int32_t answer_values_;
  const int32_t first_answer_slot_;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_TASKS_TASK_H_

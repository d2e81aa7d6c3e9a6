// Where the sequences of a unit come from.
//
// Thread-safe.
#ifndef HOPSCOPE_WORKER_ENGINE_SEQUENCE_SOURCE_H_
#define HOPSCOPE_WORKER_ENGINE_SEQUENCE_SOURCE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tokens/tokens_file.h"
#include "hopscope/v1/dispatch.pb.h"
#include "worker/engine/tasks/task.h"

namespace hopscope::engine {

class SequenceSource {
 public:
  virtual ~SequenceSource() = default;

  virtual int64_t items() const = 0;
  // Tokens of item 0 <= item < items().
  virtual int64_t tokens(int64_t item) const = 0;
  // The most slots that an item names as queries (QuerySlots).
  virtual int32_t queries() const = 0;
  // The sequences of some items, in their order.
  virtual absl::StatusOr<std::vector<Sequence>> Make(absl::Span<const int64_t> items) const = 0;
};

// Makes a task's sequences when they are asked for.
class TaskSource : public SequenceSource {
 public:
  // Item 0 is `first_item` of the cell. INVALID_ARGUMENT where the task or the spec is not right.
  static absl::StatusOr<TaskSource> Create(const v1::SequenceSpec& spec, int64_t first_item,
                                           int64_t items);

  const Task& task() const { return *task_; }

  int64_t items() const override { return items_; }
  int64_t tokens(int64_t /*item*/) const override { return tokens_; }
  int32_t queries() const override { return spec_.hops(); }
  absl::StatusOr<std::vector<Sequence>> Make(absl::Span<const int64_t> items) const override;

 private:
  TaskSource(const Task* task, v1::SequenceSpec spec, int64_t first_item, int64_t items);

  const Task* task_;
  v1::SequenceSpec spec_;
  int64_t first_item_;
  int64_t items_;
  int64_t tokens_;
};

// A line of a tokens file as a sequence; without a label, its label is -1.
Sequence SequenceOf(const tokens::TokensLine& line);

// Hands out sequences that are there already.
class ListSource : public SequenceSource {
 public:
  // `sequences` must outlive the source.
  explicit ListSource(absl::Span<const Sequence> sequences) : sequences_(sequences) {}

  int64_t items() const override { return static_cast<int64_t>(sequences_.size()); }
  int64_t tokens(int64_t item) const override {
    return static_cast<int64_t>(sequences_[item].tokens.size());
  }
  int32_t queries() const override;
  absl::StatusOr<std::vector<Sequence>> Make(absl::Span<const int64_t> items) const override;

 private:
  absl::Span<const Sequence> sequences_;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SEQUENCE_SOURCE_H_

// Sequence specs and sequences for tests.
#ifndef HOPSCOPE_WORKER_ENGINE_TASKS_TESTING_H_
#define HOPSCOPE_WORKER_ENGINE_TASKS_TESTING_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "hopscope/v1/dispatch.pb.h"
#include "worker/engine/tasks/registry.h"

namespace hopscope::engine::testing {

// Evaluation split, seed 42, random padding, the papers' window of 8 + 8.
inline v1::SequenceSpec SpecOf(const std::string& task, int hops, int added_tokens = 0,
                               const std::string& padding = "random") {
  v1::SequenceSpec spec;
  spec.set_task(task);
  spec.set_hops(hops);
  spec.set_added_tokens(added_tokens);
  spec.mutable_window()->set_target(8);
  spec.mutable_window()->set_pre_target(8);
  spec.set_padding(padding);
  spec.set_seed(42);
  spec.set_split(v1::SPLIT_EVALUATION);
  return spec;
}

// Sequences of a spec that must be right; fails the test and returns none where it is not.
inline std::vector<Sequence> MakeRange(const v1::SequenceSpec& spec, int64_t first, int64_t count) {
  absl::StatusOr<std::vector<Sequence>> sequences =
      FindTask(spec.task())->MakeRange(spec, first, count);
  EXPECT_TRUE(sequences.ok()) << sequences.status();
  return sequences.value_or(std::vector<Sequence>());
}

inline Sequence Make(const v1::SequenceSpec& spec, int64_t item) {
  absl::StatusOr<Sequence> sequence = FindTask(spec.task())->Make(spec, item);
  EXPECT_TRUE(sequence.ok()) << sequence.status();
  return sequence.value_or(Sequence());
}

}  // namespace hopscope::engine::testing

#endif  // HOPSCOPE_WORKER_ENGINE_TASKS_TESTING_H_

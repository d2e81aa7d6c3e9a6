// Solves sequences with the papers' basic functions (arXiv 2605.31558, Listing 1 and App. F.1),
// which know nothing of how the sequences were made: they read the tokens' texts.
#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/engine/tasks/registry.h"
#include "worker/engine/tasks/testing.h"

namespace hopscope::engine {
namespace {

using Text = std::vector<std::string>;

bool IsInteger(const std::string& token) { return std::isdigit(token[0]) != 0; }

bool EndsWithInteger(const std::string& token) { return std::isdigit(token.back()) != 0; }

// Index: an integer that points to a letter becomes that letter; everything else stays.
Text Index(const Text& input) {
  Text output = input;
  for (size_t slot = 0; slot < input.size(); ++slot) {
    if (!IsInteger(input[slot])) continue;
    const size_t back = std::stoul(input[slot]);
    if (back <= slot && !IsInteger(input[slot - back])) output[slot] = input[slot - back];
  }
  return output;
}

// Retrieval: a pair of letters becomes the nearest earlier pair that begins with its second letter;
// pairs with an integer, and pairs that find none, stay. `ambiguous` counts slots whose candidates
// are not all the same token.
Text Retrieval(const Text& input, std::vector<bool>* ambiguous) {
  Text output = input;
  ambiguous->assign(input.size(), false);
  for (size_t slot = 0; slot < input.size(); ++slot) {
    if (EndsWithInteger(input[slot])) continue;
    for (size_t earlier = 0; earlier < slot; ++earlier) {
      if (input[earlier][0] != input[slot][1]) continue;
      if (output[slot] != input[slot] && output[slot] != input[earlier]) (*ambiguous)[slot] = true;
      output[slot] = input[earlier];
    }
  }
  return output;
}

// The token at the last slot after applying the task's function `layers` times; empty where it was
// ambiguous.
std::string Apply(const std::string& task, Text text, int layers) {
  for (int layer = 0; layer < layers; ++layer) {
    std::vector<bool> ambiguous(text.size());
    text = task == "number" ? Index(text) : Retrieval(text, &ambiguous);
    if (ambiguous.back()) return "";
  }
  return text.back();
}

// The slots that a reader visits who starts at the last slot and follows the rule; the last one
// holds the answer. Stops where the rule leads to no slot or to more than one.
std::vector<int32_t> Follow(const std::string& task, const Text& text) {
  std::vector<int32_t> slots = {static_cast<int32_t>(text.size()) - 1};
  while (true) {
    const int32_t slot = slots.back();
    const std::string& token = text[slot];
    if (task == "number" ? !IsInteger(token) : EndsWithInteger(token)) return slots;
    std::vector<int32_t> next;
    if (task == "number") {
      const int32_t back = std::stoi(token);
      if (back <= slot) next.push_back(slot - back);
    } else {
      for (int32_t earlier = 0; earlier < slot; ++earlier) {
        if (text[earlier][0] == token[1]) next.push_back(earlier);
      }
    }
    if (next.size() != 1) return slots;
    slots.push_back(next[0]);
  }
}

TEST(SolversTest, SolveThePapersExamples) {
  const Text number = absl::StrSplit("c b a 1 4 1 3 2 1", ' ');
  EXPECT_EQ(Apply("number", number, 4), "c");
  EXPECT_EQ(Apply("number", number, 3), "1");
  EXPECT_THAT(Follow("number", number), ::testing::ElementsAre(8, 7, 5, 4, 0));
  const Text letter = absl::StrSplit("c2 b1 a3 fa ec de hf gd ig", ' ');
  EXPECT_EQ(Apply("letter", letter, 4), "c2");
  EXPECT_EQ(Apply("letter", letter, 3), "ec");
  EXPECT_THAT(Follow("letter", letter), ::testing::ElementsAre(8, 7, 5, 4, 0));
  EXPECT_EQ(Apply("number", absl::StrSplit("w y b c v t r i p p 10", ' '), 1), "w");
  EXPECT_EQ(Apply("letter", absl::StrSplit("a4 b3 c2 d1 fc", ' '), 1), "c2");
  EXPECT_EQ(Apply("letter", absl::StrSplit("a4 a3 c2 d1 fa", ' '), 1), "") << "two answers";
}

class SolversTest : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  const std::string task_name = std::get<0>(GetParam());
  const int hops = std::get<1>(GetParam());

  void ExpectSolved(const v1::SequenceSpec& spec, int64_t count) {
    const Task* task = FindTask(task_name);
    std::vector<std::string> texts;
    for (int32_t id = 0; id < task->vocab_size(spec.window()); ++id)
      texts.push_back(task->TokenText(id));
    const absl::StatusOr<std::vector<Sequence>> sequences = task->MakeRange(spec, 0, count);
    ASSERT_TRUE(sequences.ok()) << sequences.status();
    int64_t solved = 0;
    for (const Sequence& sequence : *sequences) {
      Text text;
      for (const int32_t token : sequence.tokens) text.push_back(texts[token]);
      std::vector<int32_t> slots = sequence.path;
      slots.push_back(sequence.target);
      ASSERT_EQ(Follow(task_name, text), slots) << absl::StrJoin(text, " ");
      // After h layers the answer, and not before.
      ASSERT_EQ(Apply(task_name, text, hops), texts[sequence.label]) << absl::StrJoin(text, " ");
      const std::string before = Apply(task_name, text, hops - 1);
      ASSERT_TRUE(task_name == "number" ? IsInteger(before) : !EndsWithInteger(before)) << before;
      ++solved;
    }
    EXPECT_EQ(solved, count);
  }
};

INSTANTIATE_TEST_SUITE_P(Tasks, SolversTest,
                         ::testing::Combine(::testing::Values("number", "letter"),
                                            ::testing::Values(1, 2, 3, 4)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + std::to_string(std::get<1>(info.param));
                         });

TEST_P(SolversTest, SolveTwentyThousandSequences) {
  ExpectSolved(testing::SpecOf(task_name, hops), 20000);
}

TEST_P(SolversTest, SolveSequencesWithAddedTokensOfEveryKind) {
  for (const char* padding : {"random", "pairs", "window", "constant"}) {
    if (task_name == "number" && std::string(padding) == "pairs") continue;
    SCOPED_TRACE(padding);
    ExpectSolved(testing::SpecOf(task_name, hops, 50, padding), 2000);
    ExpectSolved(testing::SpecOf(task_name, hops, 850, padding), 5);
  }
}

TEST_P(SolversTest, SolveTrainingSequencesAndOtherSeeds) {
  v1::SequenceSpec spec = testing::SpecOf(task_name, hops, 3);
  spec.set_split(v1::SPLIT_TRAIN);
  spec.set_seed(-12345);
  ExpectSolved(spec, 2000);
}

TEST_P(SolversTest, SolveOtherWindows) {
  for (const auto& [target, pre_target] : {std::pair{4, 12}, {13, 3}, {1, 3}}) {
    v1::SequenceSpec spec = testing::SpecOf(task_name, hops, 10);
    spec.mutable_window()->set_target(target);
    spec.mutable_window()->set_pre_target(pre_target);
    ExpectSolved(spec, 1000);
  }
}

}  // namespace
}  // namespace hopscope::engine

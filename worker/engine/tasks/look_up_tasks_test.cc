// Tasks "index", "retrieval" and "partial_induction", solved by readers that know the texts of
// tokens alone; and windows of any size for one hop.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/spec/catalog.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/engine/tasks/testing.h"

namespace hopscope::engine {
namespace {

using Text = std::vector<std::string>;
using testing::Make;
using testing::MakeRange;

v1::SequenceSpec SpecOf(const std::string& task, int target, int added_tokens = 0,
                        const std::string& padding = "random") {
  v1::SequenceSpec spec = testing::SpecOf(task, 1, added_tokens, padding);
  spec.mutable_window()->set_target(target);
  spec.mutable_window()->set_pre_target(0);
  return spec;
}

// A reader's answer, and the slot that it was read from.
struct Answer {
  std::string text;
  size_t slot = 0;
  int matches = 0;  // pairs of the queried symbol
};

// The symbol "s5" and the attribute "w3" of "s5w3".
std::pair<std::string, std::string> Split(const std::string& pair) {
  const size_t at = pair.find('w');
  return {pair.substr(0, at), pair.substr(at)};
}

Answer Solve(const std::string& task, const Text& text, size_t window) {
  const std::string& query = text.back();
  Answer answer;
  if (task == "index") {
    answer.slot = text.size() - 1 - window + std::stoul(query.substr(1)) - 1;
    answer.text = text[answer.slot];
    return answer;
  }
  if (task == "number") {
    answer.slot = text.size() - 1 - std::stoul(query);
    answer.text = text[answer.slot];
    return answer;
  }
  if (task == "letter") {
    for (size_t slot = 0; slot + 1 < text.size(); ++slot) {
      if (text[slot][0] != query[1]) continue;
      ++answer.matches;
      answer.slot = slot;
      answer.text = text[slot];
    }
    return answer;
  }
  for (size_t slot = 0; slot + 1 < text.size(); ++slot) {
    const auto [symbol, attribute] = Split(text[slot]);
    if (symbol != query) continue;
    ++answer.matches;
    answer.slot = slot;
    answer.text = attribute;
  }
  return answer;
}

Text TextOf(const Task& task, const Sequence& sequence) {
  Text text;
  for (const int32_t token : sequence.tokens) text.push_back(task.TokenText(token));
  return text;
}

void ExpectSolved(const v1::SequenceSpec& spec, int64_t count) {
  const Task& task = *FindTask(spec.task());
  const int32_t vocab = task.vocab_size(spec.window());
  int64_t solved = 0;
  std::set<int> matches;
  for (const Sequence& sequence : MakeRange(spec, 0, count)) {
    for (const int32_t token : sequence.tokens) {
      ASSERT_GE(token, 1);
      ASSERT_LT(token, vocab);
    }
    ASSERT_LT(sequence.label, vocab);
    const Text text = TextOf(task, sequence);
    const Answer answer = Solve(spec.task(), text, spec.window().target());
    ASSERT_EQ(answer.text, task.TokenText(sequence.label)) << absl::StrJoin(text, " ");
    ASSERT_EQ(answer.slot, static_cast<size_t>(sequence.target)) << absl::StrJoin(text, " ");
    ASSERT_THAT(sequence.path,
                ::testing::ElementsAre(static_cast<int32_t>(sequence.tokens.size()) - 1));
    matches.insert(answer.matches);
    ++solved;
  }
  EXPECT_EQ(solved, count);
  if (spec.task() == "retrieval" || spec.task() == "letter") {
    EXPECT_THAT(matches, ::testing::ElementsAre(1));
  }
  if (spec.task() == "partial_induction" && spec.window().target() > 2) {
    EXPECT_THAT(matches, ::testing::ElementsAre(2, 3));
  }
}

class LookUpTaskTest : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Tasks, LookUpTaskTest,
                         ::testing::Values("index", "retrieval", "partial_induction"),
                         [](const auto& info) { return info.param; });

TEST_P(LookUpTaskTest, ReadersSolveTwentyThousandSequences) {
  ExpectSolved(SpecOf(GetParam(), 16), 20000);
}

TEST_P(LookUpTaskTest, ReadersSolveOtherWindowsAndAddedTokens) {
  for (const int target : {2, 3, 5, 32}) ExpectSolved(SpecOf(GetParam(), target), 1000);
  for (const std::string& padding : spec::FindTask(GetParam())->paddings()) {
    SCOPED_TRACE(padding);
    ExpectSolved(SpecOf(GetParam(), 16, 100, padding), 500);
  }
}

TEST_P(LookUpTaskTest, EveryBlockHoldsEachAnswerSlotAndValueOnce) {
  const v1::SequenceSpec spec = SpecOf(GetParam(), 16);
  const bool partial = GetParam() == "partial_induction";
  const int64_t size = FindTask(GetParam())->BlockSize(spec.window());
  EXPECT_EQ(size, GetParam() == "index" ? 16 * 32 : partial ? 15 * 8 : 16 * 8);
  for (int block = 0; block < 3; ++block) {
    std::set<std::pair<int32_t, int32_t>> seen;
    for (const Sequence& sequence : MakeRange(spec, block * size, size)) {
      EXPECT_GE(sequence.target, partial ? 1 : 0);
      EXPECT_LT(sequence.target, 16);
      seen.emplace(sequence.target, sequence.label);
    }
    EXPECT_EQ(seen.size(), static_cast<size_t>(size));
  }
}

TEST_P(LookUpTaskTest, AnItemIsTheSameAloneInARangeAndBehindAddedTokens) {
  const std::vector<Sequence> range = MakeRange(SpecOf(GetParam(), 16), 100, 300);
  for (const int i : {299, 0, 27, 28, 156}) {
    EXPECT_EQ(Make(SpecOf(GetParam(), 16), 100 + i).tokens, range[i].tokens);
    const Sequence longer = Make(SpecOf(GetParam(), 16, 40), 100 + i);
    EXPECT_EQ(std::vector<int32_t>(longer.tokens.begin() + 40, longer.tokens.end()),
              range[i].tokens);
    EXPECT_EQ(longer.label, range[i].label);
    EXPECT_EQ(longer.target, range[i].target + 40);
  }
}

TEST_P(LookUpTaskTest, HasOneHopAndNoPreTargetSlots) {
  v1::SequenceSpec spec = SpecOf(GetParam(), 16);
  spec.set_hops(2);
  EXPECT_EQ(
      common::GetErrorInfo(FindTask(GetParam())->Make(spec, 0).status())->metadata().at("field"),
      "sequences.hops");
  spec = SpecOf(GetParam(), 16);
  spec.mutable_window()->set_pre_target(1);
  EXPECT_EQ(
      common::GetErrorInfo(FindTask(GetParam())->Make(spec, 0).status())->metadata().at("field"),
      "sequences.window.pre_target");
}

TEST(PartialInductionTest, EarlierPairsOfTheSymbolHaveAnotherAttribute) {
  const Task& task = *FindTask("partial_induction");
  for (const Sequence& sequence : MakeRange(SpecOf("partial_induction", 16), 0, 2000)) {
    const Text text = TextOf(task, sequence);
    for (int slot = 0; slot < 16; ++slot) {
      const auto [symbol, attribute] = Split(text[slot]);
      if (symbol != text.back() || slot == sequence.target) continue;
      ASSERT_LT(slot, sequence.target);
      ASSERT_NE(attribute, task.TokenText(sequence.label));
    }
  }
}

// They must never change: results of any two releases are comparable only while they hold.
TEST(LookUpTaskGoldenTest, SequencesStayWhatTheyAre) {
  EXPECT_EQ(absl::StrJoin(TextOf(*FindTask("index"), Make(SpecOf("index", 8), 3)), " "),
            "i ab ac z l g af t p5");
  EXPECT_EQ(absl::StrJoin(TextOf(*FindTask("retrieval"), Make(SpecOf("retrieval", 8), 3)), " "),
            "s8w4 s16w5 s18w5 s1w2 s7w2 s21w6 s28w7 s17w7 s21");
  EXPECT_EQ(
      absl::StrJoin(TextOf(*FindTask("partial_induction"), Make(SpecOf("partial_induction", 8), 3)),
                    " "),
      "s21w6 s32w4 s25w5 s1w6 s15w6 s14w1 s25w2 s17w2 s25");
  EXPECT_EQ(absl::StrJoin(TextOf(*FindTask("number"), Make(SpecOf("number", 24), 3)), " "),
            "y bo aq p am ai ci ae aw cb cv co db ac af cd ar y i bo az bf bf aa 3");
}

TEST(OneHopWindowTest, NumberAndLetterAreSolvedAtEverySizeTheyAllow) {
  for (const std::string task : {"number", "letter"}) {
    for (const int target : {1, 12, 16, 17, 24, 100, 300, 512}) {
      SCOPED_TRACE(::testing::Message() << task << " " << target);
      ExpectSolved(SpecOf(task, target), 1000);
    }
  }
}

TEST(OneHopWindowTest, NumberHasOneTokenMoreForEachSlotBeyondSixteen) {
  const auto vocab = [](int target, int pre_target) {
    v1::Window window;
    window.set_target(target);
    window.set_pre_target(pre_target);
    return FindTask("number")->vocab_size(window);
  };
  EXPECT_EQ(vocab(8, 8), 137);
  EXPECT_EQ(vocab(16, 0), 137);
  EXPECT_EQ(vocab(17, 0), 138);
  EXPECT_EQ(vocab(300, 0), 421);
  EXPECT_EQ(vocab(200, 100), 421);
  EXPECT_EQ(FindTask("number")->TokenText(136), "dp");
  EXPECT_EQ(FindTask("number")->TokenText(137), "17");
  EXPECT_EQ(FindTask("number")->TokenText(420), "300");
  EXPECT_EQ(FindTask("number")->TokenText(633), "<633?>");
}

}  // namespace
}  // namespace hopscope::engine

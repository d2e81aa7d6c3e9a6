#include "worker/engine/tasks/letter.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "common/spec/catalog.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/engine/tasks/testing.h"

namespace hopscope::engine {
namespace {

using testing::Make;
using testing::MakeRange;
using testing::SpecOf;

double Tolerance(double share, double n) { return 5 * std::sqrt(share * (1 - share) / n); }

TEST(LetterTaskTest, TextsAreTheVocabularyOfThePaper) {
  const LetterTask task;
  EXPECT_EQ(task.vocab_size(spec::FindTask("letter")->default_window()), 129);
  EXPECT_EQ(task.TokenText(0), "<pad>");
  EXPECT_EQ(task.TokenText(1), "a1");
  EXPECT_EQ(task.TokenText(8), "a8");
  EXPECT_EQ(task.TokenText(9), "b1");
  EXPECT_EQ(task.TokenText(21), "c5");
  EXPECT_EQ(task.TokenText(64), "h8");
  EXPECT_EQ(task.TokenText(65), "aa");
  EXPECT_EQ(task.TokenText(116), "gd");
  EXPECT_EQ(task.TokenText(128), "hh");
  EXPECT_EQ(task.TokenText(129), "<129?>");
  EXPECT_EQ(task.TokenText(-3), "<-3?>");
  std::set<std::string> texts;
  for (int32_t id = 0; id < task.vocab_size(spec::FindTask("letter")->default_window()); ++id)
    texts.insert(task.TokenText(id));
  EXPECT_EQ(texts.size(), 129u);
}

class LetterTaskTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Hops, LetterTaskTest, ::testing::Values(1, 2, 3, 4));

TEST_P(LetterTaskTest, EachLetterOfThePathBeginsOnePairOfTheWholeSequence) {
  const LetterTask task;
  for (const char* padding : {"random", "pairs", "window", "constant"}) {
    for (const Sequence& sequence : MakeRange(SpecOf("letter", GetParam(), 60, padding), 0, 1000)) {
      for (const int32_t slot : sequence.path) {
        const char letter = task.TokenText(sequence.tokens[slot])[1];
        const auto begins = [&](int32_t token) { return task.TokenText(token)[0] == letter; };
        ASSERT_EQ(std::count_if(sequence.tokens.begin(), sequence.tokens.end() - 1, begins), 1)
            << padding;
      }
    }
  }
}

TEST_P(LetterTaskTest, PairsOffThePathHoldFreeLettersOnly) {
  const LetterTask task;
  for (const Sequence& sequence : MakeRange(SpecOf("letter", GetParam()), 0, 2000)) {
    std::string path_letters;
    for (const int32_t slot : sequence.path) {
      path_letters += task.TokenText(sequence.tokens[slot])[1];
    }
    for (int32_t slot = 8; slot < 16; ++slot) {
      if (std::count(sequence.path.begin(), sequence.path.end(), slot) != 0) continue;
      const std::string text = task.TokenText(sequence.tokens[slot]);
      ASSERT_EQ(path_letters.find(text[0]), std::string::npos) << text;
      ASSERT_EQ(path_letters.find(text[1]), std::string::npos) << text;
    }
    ASSERT_EQ(path_letters.find(task.TokenText(sequence.tokens[16])[0]), std::string::npos);
  }
}

TEST_P(LetterTaskTest, TargetSlotsHoldIntegersAndLaterSlotsLetters) {
  for (const Sequence& sequence : MakeRange(SpecOf("letter", GetParam()), 0, 2000)) {
    for (int slot = 0; slot < 17; ++slot) {
      ASSERT_EQ(sequence.tokens[slot] <= 64, slot < 8) << slot;
    }
  }
}

TEST_P(LetterTaskTest, PathAndFreeLettersAndIntegersAreUniform) {
  const LetterTask task;
  const int64_t items = 20 * 512;
  std::vector<double> query_letters(8), integers(9), first_letters(8);
  double integer_draws = 0, first_draws = 0;
  for (const Sequence& sequence : MakeRange(SpecOf("letter", GetParam()), 0, items)) {
    ++query_letters[task.TokenText(sequence.tokens[16])[1] - 'a'];
    for (int slot = 0; slot < 8; ++slot) {
      if (slot == sequence.target) continue;
      const std::string text = task.TokenText(sequence.tokens[slot]);
      ++integers[text[1] - '0'];
      ++integer_draws;
      ++first_letters[text[0] - 'a'];
      ++first_draws;
    }
  }
  for (int letter = 0; letter < 8; ++letter) {
    EXPECT_NEAR(query_letters[letter] / items, .125, Tolerance(.125, items)) << letter;
    // The 7 letters of a sequence exclude the same path letters: allow for their dependence.
    EXPECT_NEAR(first_letters[letter] / first_draws, .125, 3 * Tolerance(.125, first_draws));
  }
  for (int integer = 1; integer <= 8; ++integer) {
    EXPECT_NEAR(integers[integer] / integer_draws, .125, Tolerance(.125, integer_draws));
  }
}

TEST(LetterPaddingTest, RandomPaddingIsUniformOverFreeLettersAndIntegers) {
  const LetterTask task;
  // One item alone, far out: 4 free letters x 8 integers.
  const Sequence sequence = Make(SpecOf("letter", 4, 50000), 3);
  std::vector<double> counts(129);
  for (int i = 0; i < 50000; ++i) ++counts[sequence.tokens[i]];
  int used = 0;
  for (int id = 0; id < 129; ++id) {
    if (counts[id] == 0) continue;
    ++used;
    EXPECT_LE(id, 64);
    EXPECT_NEAR(counts[id] / 50000, 1.0 / 32, Tolerance(1.0 / 32, 50000)) << task.TokenText(id);
  }
  EXPECT_EQ(used, 32);
}

TEST(LetterPaddingTest, PairsPaddingIsUniformOverPairsOfFreeLetters) {
  const LetterTask task;
  const Sequence sequence = Make(SpecOf("letter", 4, 50000, "pairs"), 3);
  std::vector<double> counts(129);
  for (int i = 0; i < 50000; ++i) ++counts[sequence.tokens[i]];
  int used = 0;
  for (int id = 0; id < 129; ++id) {
    if (counts[id] == 0) continue;
    ++used;
    EXPECT_GT(id, 64);
    EXPECT_NEAR(counts[id] / 50000, 1.0 / 16, Tolerance(1.0 / 16, 50000)) << task.TokenText(id);
  }
  EXPECT_EQ(used, 16);
}

TEST(LetterPaddingTest, ConstantPaddingIsOneFreeTokenAnotherForEachItem) {
  std::set<int32_t> tokens;
  for (const Sequence& sequence : MakeRange(SpecOf("letter", 2, 40, "constant"), 0, 100)) {
    EXPECT_EQ(std::set<int32_t>(sequence.tokens.begin(), sequence.tokens.begin() + 40).size(), 1u);
    tokens.insert(sequence.tokens[0]);
  }
  EXPECT_GT(tokens.size(), 20u);
}

}  // namespace
}  // namespace hopscope::engine

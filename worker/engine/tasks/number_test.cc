#include "worker/engine/tasks/number.h"

#include <cmath>
#include <set>

#include "common/spec/catalog.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/engine/tasks/testing.h"

namespace hopscope::engine {
namespace {

using testing::MakeRange;
using testing::SpecOf;

// Five standard deviations of a share of n, and half of the last printed digit.
double Tolerance(double share, double n, double digit) {
  return 5 * std::sqrt(share * (1 - share) / n) + digit / 2;
}

TEST(NumberTaskTest, TextsAreTheVocabularyOfThePaper) {
  const NumberTask task;
  EXPECT_EQ(task.vocab_size(spec::FindTask("number")->default_window()), 137);
  EXPECT_EQ(task.TokenText(0), "<pad>");
  EXPECT_EQ(task.TokenText(1), "1");
  EXPECT_EQ(task.TokenText(16), "16");
  EXPECT_EQ(task.TokenText(17), "a");
  EXPECT_EQ(task.TokenText(42), "z");
  EXPECT_EQ(task.TokenText(43), "aa");
  EXPECT_EQ(task.TokenText(68), "az");
  EXPECT_EQ(task.TokenText(69), "ba");
  EXPECT_EQ(task.TokenText(136), "dp");
  EXPECT_EQ(task.TokenText(137), "17") << "of a larger window";
  EXPECT_EQ(task.TokenText(-1), "<-1?>");
  std::set<std::string> texts;
  for (int32_t id = 0; id < task.vocab_size(spec::FindTask("number")->default_window()); ++id)
    texts.insert(task.TokenText(id));
  EXPECT_EQ(texts.size(), 137u);
}

TEST(NumberTaskTest, IntegersHaveTheFrequenciesOfThePublishedGenerator) {
  std::vector<double> counts(17);
  double integers = 0;
  for (int hops = 1; hops <= 4; ++hops) {
    for (const Sequence& sequence : MakeRange(SpecOf("number", hops), 0, 10 * 960)) {
      for (int slot = 8; slot <= 16; ++slot) {
        const int32_t value = sequence.tokens[slot];
        ASSERT_GE(value, 1);
        ASSERT_LE(value, slot) << "points in front of the window";
        ++counts[value];
        ++integers;
      }
    }
  }
  EXPECT_NEAR(counts[1] / integers, .118, Tolerance(.118, integers, .001));
  EXPECT_NEAR(counts[16] / integers, .003, Tolerance(.003, integers, .001));
  // 16 fits at the query alone, with one hop, to slot 0: exactly 1 in 4 * 8 * 9 integers.
  EXPECT_EQ(counts[16], 10 * 120);
}

TEST(NumberTaskTest, TheAnswerLetterIsRepeatedInTheWindowAsOftenAsLettersAreIndependent) {
  double repeated = 0;
  const int64_t items = 20 * 960;
  for (const Sequence& sequence : MakeRange(SpecOf("number", 2), 0, items)) {
    int copies = 0;
    for (int slot = 0; slot < 8; ++slot) copies += sequence.tokens[slot] == sequence.label;
    repeated += copies > 1;
  }
  EXPECT_NEAR(repeated / items, 1 - std::pow(119.0 / 120, 7), Tolerance(.057, items, 0));
  EXPECT_NEAR(repeated / items, .057, Tolerance(.057, items, .001));
}

TEST(NumberTaskTest, IntegersOffThePathPointToEachEarlierSlotEquallyOften) {
  // With one hop all pre-target slots are off the path; slot 15 then points to one of 15 slots.
  std::vector<double> counts(15);
  const int64_t items = 20 * 960;
  for (const Sequence& sequence : MakeRange(SpecOf("number", 1), 0, items)) {
    ++counts[15 - sequence.tokens[15]];
  }
  for (int slot = 0; slot < 15; ++slot) {
    EXPECT_NEAR(counts[slot] / items, 1.0 / 15, Tolerance(1.0 / 15, items, 0)) << slot;
  }
}

TEST(NumberTaskTest, RandomPaddingIsUniformOverTheLetters) {
  std::vector<double> counts(137);
  const double draws = 500 * 400;
  for (const Sequence& sequence : MakeRange(SpecOf("number", 3, 400), 0, 500)) {
    for (int i = 0; i < 400; ++i) ++counts[sequence.tokens[i]];
  }
  for (int id = 0; id < 17; ++id) EXPECT_EQ(counts[id], 0) << id;
  for (int id = 17; id < 137; ++id) {
    EXPECT_NEAR(counts[id] / draws, 1.0 / 120, Tolerance(1.0 / 120, draws, 0)) << id;
  }
}

}  // namespace
}  // namespace hopscope::engine

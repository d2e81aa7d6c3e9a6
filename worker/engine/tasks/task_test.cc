#include "worker/engine/tasks/task.h"

#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "common/spec/catalog.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/engine/tasks/registry.h"
#include "worker/engine/tasks/testing.h"

namespace hopscope::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::Make;
using testing::MakeRange;
using testing::SpecOf;

bool Same(const Sequence& a, const Sequence& b) {
  return a.tokens == b.tokens && a.label == b.label && a.path == b.path && a.target == b.target;
}

// The goldens were computed by a second implementation, written from the headers' text in Python.
// They must never change: results of any two releases are comparable only while they hold.
struct Golden {
  std::string task;
  int64_t seed;
  v1::Split split;
  int hops;
  int64_t item;
  std::vector<int32_t> tokens;
  int32_t label;
  std::vector<int32_t> path;
  int32_t target;
};

TEST(TaskGoldenTest, WindowsAreThoseOfTheDocumentedMethod) {
  const std::vector<Golden> goldens = {
      {"number",
       42,
       v1::SPLIT_EVALUATION,
       1,
       0,
       {110, 80, 52, 109, 20, 127, 103, 106, 6, 3, 7, 7, 8, 10, 14, 2, 15},
       80,
       {16},
       1},
      {"number",
       42,
       v1::SPLIT_EVALUATION,
       4,
       0,
       {18, 88, 33, 104, 27, 119, 108, 56, 4, 5, 4, 2, 4, 9, 3, 8, 2},
       27,
       {16, 14, 11, 9},
       4},
      {"number",
       42,
       v1::SPLIT_EVALUATION,
       4,
       959,
       {121, 22, 106, 29, 22, 122, 96, 70, 5, 4, 1, 9, 3, 10, 1, 1, 1},
       29,
       {16, 15, 14, 13},
       3},
      {"number",
       42,
       v1::SPLIT_EVALUATION,
       4,
       960,
       {63, 134, 65, 51, 17, 21, 109, 31, 8, 4, 8, 1, 5, 5, 3, 2, 2},
       65,
       {16, 14, 11, 10},
       2},
      {"number",
       -1,
       v1::SPLIT_TRAIN,
       2,
       12345678,
       {75, 122, 39, 134, 62, 88, 102, 104, 6, 7, 8, 5, 11, 12, 12, 3, 4},
       122,
       {16, 12},
       1},
      {"letter",
       42,
       v1::SPLIT_EVALUATION,
       1,
       0,
       {17, 4, 50, 27, 56, 4, 15, 2, 92, 83, 95, 123, 120, 100, 94, 93, 114},
       15,
       {16},
       6},
      {"letter",
       42,
       v1::SPLIT_EVALUATION,
       4,
       0,
       {42, 34, 26, 56, 16, 28, 35, 39, 126, 72, 76, 79, 93, 95, 100, 81, 115},
       42,
       {16, 15, 9, 8},
       0},
      {"letter",
       42,
       v1::SPLIT_EVALUATION,
       4,
       512,
       {30, 3, 38, 57, 35, 50, 3, 35, 121, 104, 87, 93, 101, 89, 107, 78, 98},
       50,
       {16, 15, 14, 10},
       5},
      {"letter",
       7,
       v1::SPLIT_VALIDATION,
       3,
       100,
       {54, 5, 64, 61, 19, 28, 17, 29, 74, 123, 123, 80, 105, 102, 87, 88, 117},
       5,
       {16, 13, 12},
       1},
  };
  for (const Golden& golden : goldens) {
    SCOPED_TRACE(golden.task + " " + std::to_string(golden.item));
    v1::SequenceSpec spec = SpecOf(golden.task, golden.hops);
    spec.set_seed(golden.seed);
    spec.set_split(golden.split);
    const Sequence sequence = Make(spec, golden.item);
    EXPECT_EQ(sequence.tokens, golden.tokens);
    EXPECT_EQ(sequence.label, golden.label);
    EXPECT_EQ(sequence.path, golden.path);
    EXPECT_EQ(sequence.target, golden.target);
  }
}

TEST(TaskGoldenTest, OtherWindowsAreThoseOfTheDocumentedMethod) {
  v1::SequenceSpec number = SpecOf("number", 2);
  number.mutable_window()->set_target(4);
  number.mutable_window()->set_pre_target(3);
  EXPECT_THAT(Make(number, 9).tokens, ElementsAre(86, 83, 108, 54, 1, 2, 3, 2));
  v1::SequenceSpec letter = SpecOf("letter", 2);
  letter.mutable_window()->set_target(20);
  letter.mutable_window()->set_pre_target(30);
  EXPECT_THAT(
      Make(letter, 9).tokens,
      ElementsAre(58, 45, 24, 50, 49, 47, 9, 11, 26, 59, 40, 58, 18, 42, 21, 62, 16, 61, 14, 13, 78,
                  122, 107, 103, 82, 68, 120, 125, 101, 104, 112, 112, 122, 119, 80, 119, 117, 123,
                  123, 125, 99, 117, 98, 117, 75, 78, 106, 79, 111, 101, 73));
}

TEST(TaskGoldenTest, AddedTokensAreThoseOfTheDocumentedMethod) {
  const auto added = [](const std::string& task, int count, const std::string& padding) {
    std::vector<int32_t> tokens = Make(SpecOf(task, 3, count, padding), 5).tokens;
    tokens.resize(count);
    return tokens;
  };
  EXPECT_THAT(added("number", 4, "random"), ElementsAre(84, 78, 78, 104));
  EXPECT_THAT(added("number", 4, "window"), ElementsAre(5, 9, 1, 12));
  EXPECT_THAT(added("number", 3, "constant"), ElementsAre(74, 74, 74));
  EXPECT_THAT(added("letter", 4, "random"), ElementsAre(41, 25, 30, 54));
  EXPECT_THAT(added("letter", 4, "pairs"), ElementsAre(113, 68, 65, 70));
  EXPECT_THAT(added("letter", 17, "window"),
              ElementsAre(68, 119, 71, 105, 58, 25, 54, 7, 31, 28, 45, 72, 111, 68, 119, 71, 105));
  EXPECT_THAT(added("letter", 3, "constant"), ElementsAre(52, 52, 52));
}

TEST(RegistryTest, HoldsTheTasksOfTheCatalog) {
  // The last one's sequences are not made.
  ASSERT_EQ(Tasks().size() + 1, spec::Tasks().size());
  EXPECT_EQ(spec::Tasks().back().name(), spec::kTokensTask);
  for (size_t i = 0; i < Tasks().size(); ++i) {
    EXPECT_EQ(Tasks()[i]->name(), spec::Tasks()[i].name());
    EXPECT_EQ(Tasks()[i]->vocab_size(spec::Tasks()[i].default_window()),
              spec::Tasks()[i].vocab_size());
    EXPECT_EQ(FindTask(Tasks()[i]->name()), Tasks()[i]);
  }
  EXPECT_EQ(FindTask("no such task"), nullptr);
}

class EachTaskTest : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  const std::string task = std::get<0>(GetParam());
  const int hops = std::get<1>(GetParam());
  std::vector<std::string> Paddings() const {
    const auto& paddings = spec::FindTask(task)->paddings();
    return {paddings.begin(), paddings.end()};
  }
};

INSTANTIATE_TEST_SUITE_P(Tasks, EachTaskTest,
                         ::testing::Combine(::testing::Values("number", "letter"),
                                            ::testing::Values(1, 2, 3, 4)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + std::to_string(std::get<1>(info.param));
                         });

TEST_P(EachTaskTest, AnItemIsTheSameAloneInARangeAndInAnyOrder) {
  const v1::SequenceSpec spec = SpecOf(task, hops, 20);
  const int64_t first = 400;  // the range crosses blocks
  const std::vector<Sequence> range = MakeRange(spec, first, 1000);
  ASSERT_EQ(range.size(), 1000u);
  const std::vector<Sequence> second_half = MakeRange(spec, first + 500, 500);
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(Same(range[500 + i], second_half[i])) << i;
  for (const int i : {999, 0, 563, 561, 562, 111, 112, 113, 4}) {
    EXPECT_TRUE(Same(Make(spec, first + i), range[i])) << i;
  }
}

TEST_P(EachTaskTest, EveryBlockHoldsEachAnswerSlotAndValueOnce) {
  const v1::SequenceSpec spec = SpecOf(task, hops);
  const int64_t size = FindTask(task)->BlockSize(spec.window());
  EXPECT_EQ(size, task == "number" ? 960 : 512);
  std::set<std::vector<std::pair<int32_t, int32_t>>> orders;
  for (int block = 0; block < 4; ++block) {
    std::map<std::pair<int32_t, int32_t>, int> seen;
    std::vector<std::pair<int32_t, int32_t>> order;
    for (const Sequence& sequence : MakeRange(spec, block * size, size)) {
      order.emplace_back(sequence.target, sequence.label);
      ++seen[order.back()];
    }
    EXPECT_EQ(seen.size(), static_cast<size_t>(size));
    for (const auto& [combination, count] : seen) {
      ASSERT_EQ(count, 1) << combination.first << " " << combination.second;
    }
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 4u) << "blocks repeat the order of another";
}

TEST_P(EachTaskTest, LongerSequencesEndWithTheShorterOnes) {
  for (const std::string& padding : Paddings()) {
    SCOPED_TRACE(padding);
    for (int64_t item = 0; item < 50; ++item) {
      const Sequence at_0 = Make(SpecOf(task, hops), item);
      const Sequence at_100 = Make(SpecOf(task, hops, 100, padding), item);
      const Sequence at_300 = Make(SpecOf(task, hops, 300, padding), item);
      ASSERT_EQ(at_100.tokens.size(), 117u);
      ASSERT_EQ(at_300.tokens.size(), 317u);
      EXPECT_THAT(at_0.tokens, ElementsAreArray(at_100.tokens.begin() + 100, at_100.tokens.end()));
      EXPECT_THAT(at_100.tokens,
                  ElementsAreArray(at_300.tokens.begin() + 200, at_300.tokens.end()));
      for (const auto& [shift, longer] : {std::pair{100, at_100}, {300, at_300}}) {
        EXPECT_EQ(longer.label, at_0.label);
        EXPECT_EQ(longer.target, at_0.target + shift);
        for (size_t hop = 0; hop < at_0.path.size(); ++hop) {
          EXPECT_EQ(longer.path[hop], at_0.path[hop] + shift);
        }
      }
    }
  }
}

TEST_P(EachTaskTest, PathRunsFromTheQueryThroughThePreTargetSlotsToTheTarget) {
  for (const Sequence& sequence : MakeRange(SpecOf(task, hops, 30), 0, 1000)) {
    ASSERT_EQ(sequence.path.size(), static_cast<size_t>(hops));
    EXPECT_EQ(sequence.path[0], 30 + 16);
    for (int hop = 1; hop < hops; ++hop) {
      EXPECT_LT(sequence.path[hop], sequence.path[hop - 1]);
      EXPECT_GE(sequence.path[hop], 30 + 8);
    }
    EXPECT_GE(sequence.target, 30);
    EXPECT_LT(sequence.target, 30 + 8);
    EXPECT_EQ(sequence.tokens[sequence.target], sequence.label);
  }
}

TEST_P(EachTaskTest, PathSlotsAreUniform) {
  std::vector<int> counts(17);
  const int items = 8000;
  for (const Sequence& sequence : MakeRange(SpecOf(task, hops), 0, items)) {
    for (int hop = 1; hop < hops; ++hop) ++counts[sequence.path[hop]];
  }
  // Each of the 8 slots is on the path with p = (hops - 1) / 8; bound of 5 standard deviations.
  const double p = (hops - 1) / 8.0;
  for (int slot = 8; slot < 16; ++slot) {
    EXPECT_NEAR(counts[slot], items * p, 5 * std::sqrt(items * p * (1 - p))) << slot;
  }
}

TEST_P(EachTaskTest, TokensAreInTheVocabularyAndNeverThePaddingId) {
  for (const std::string& padding : Paddings()) {
    for (const Sequence& sequence : MakeRange(SpecOf(task, hops, 40, padding), 0, 500)) {
      for (const int32_t token : sequence.tokens) {
        ASSERT_GE(token, 1);
        ASSERT_LT(token, spec::FindTask(task)->vocab_size());
      }
    }
  }
}

TEST_P(EachTaskTest, SeedsSplitsAndHopCountsGiveDifferentSequences) {
  std::set<std::vector<int32_t>> distinct;
  size_t made = 0;
  for (const int64_t seed : {42, 43}) {
    for (const v1::Split split : {v1::SPLIT_TRAIN, v1::SPLIT_VALIDATION, v1::SPLIT_EVALUATION}) {
      v1::SequenceSpec spec = SpecOf(task, hops);
      spec.set_seed(seed);
      spec.set_split(split);
      for (const Sequence& sequence : MakeRange(spec, 0, 1000)) {
        distinct.insert(sequence.tokens);
        ++made;
      }
    }
  }
  EXPECT_EQ(distinct.size(), made);
}

TEST(TaskTest, OtherWindowsAreMadeWhereTheVocabularyAllows) {
  for (const auto& [task, target, pre_target] : {std::tuple{"number", 1, 0},
                                                 {"number", 10, 6},
                                                 {"number", 1, 15},
                                                 {"letter", 1, 0},
                                                 {"letter", 64, 64},
                                                 {"letter", 3, 1}}) {
    SCOPED_TRACE(::testing::Message() << task << " " << target << " + " << pre_target);
    for (int hops = 1; hops <= std::min(4, pre_target + 1); ++hops) {
      v1::SequenceSpec spec = SpecOf(task, hops, 5);
      spec.mutable_window()->set_target(target);
      spec.mutable_window()->set_pre_target(pre_target);
      for (const Sequence& sequence : MakeRange(spec, 0, 200)) {
        ASSERT_EQ(sequence.tokens.size(), static_cast<size_t>(5 + target + pre_target + 1));
        EXPECT_EQ(sequence.tokens[sequence.target], sequence.label);
        for (const int32_t token : sequence.tokens) {
          ASSERT_GE(token, 1);
          ASSERT_LT(token, FindTask(task)->vocab_size(spec.window()));
        }
      }
    }
  }
}

TEST(TaskTest, WrongSpecsAreRefusedWithTheField) {
  struct Case {
    std::string field;
    void (*spoil)(v1::SequenceSpec*);
  };
  const Case cases[] = {
      {"sequences.task", [](v1::SequenceSpec* spec) { spec->set_task("letters"); }},
      {"sequences.task", [](v1::SequenceSpec* spec) { spec->set_task("letter"); }},
      {"sequences.hops", [](v1::SequenceSpec* spec) { spec->set_hops(0); }},
      {"sequences.hops", [](v1::SequenceSpec* spec) { spec->set_hops(5); }},
      {"sequences.hops", [](v1::SequenceSpec* spec) { spec->mutable_window()->set_pre_target(1); }},
      {"sequences.added_tokens", [](v1::SequenceSpec* spec) { spec->set_added_tokens(-1); }},
      {"sequences.window", [](v1::SequenceSpec* spec) { spec->clear_window(); }},
      {"sequences.window", [](v1::SequenceSpec* spec) { spec->mutable_window()->set_target(505); }},
      {"sequences.window.target",
       [](v1::SequenceSpec* spec) { spec->mutable_window()->set_target(0); }},
      {"sequences.window.pre_target",
       [](v1::SequenceSpec* spec) { spec->mutable_window()->set_pre_target(-1); }},
      {"sequences.padding", [](v1::SequenceSpec* spec) { spec->set_padding("pairs"); }},
      {"sequences.padding", [](v1::SequenceSpec* spec) { spec->clear_padding(); }},
      {"sequences.split", [](v1::SequenceSpec* spec) { spec->clear_split(); }},
  };
  const Task* number = FindTask("number");
  for (const Case& one : cases) {
    v1::SequenceSpec spec = SpecOf("number", 3);
    ASSERT_TRUE(number->Make(spec, 0).ok());
    one.spoil(&spec);
    const absl::Status status = number->Make(spec, 0).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << one.field;
    ASSERT_TRUE(common::GetErrorInfo(status).has_value()) << one.field;
    EXPECT_EQ(common::GetErrorInfo(status)->metadata().at("field"), one.field) << status;
  }
}

TEST(TaskTest, ItemsOutOfRangeAreRefused) {
  const v1::SequenceSpec spec = SpecOf("number", 3);
  const Task* number = FindTask("number");
  EXPECT_TRUE(number->Make(spec, kMaxItems - 1).ok());
  EXPECT_FALSE(number->Make(spec, kMaxItems).ok());
  EXPECT_FALSE(number->Make(spec, -1).ok());
  EXPECT_FALSE(number->MakeRange(spec, 0, -1).ok());
  EXPECT_FALSE(number->MakeRange(spec, kMaxItems - 1, 2).ok());
  EXPECT_FALSE(number->MakeRange(spec, 1, INT64_MAX).ok());
  EXPECT_THAT(number->MakeRange(spec, 3, 0)->size(), 0u);
}

}  // namespace
}  // namespace hopscope::engine

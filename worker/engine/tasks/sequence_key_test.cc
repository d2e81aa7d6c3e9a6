#include "worker/engine/tasks/sequence_key.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/engine/tasks/testing.h"

namespace hopscope::engine {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

constexpr rng::Domain kDomains[] = {rng::Domain::kWindow, rng::Domain::kItemOrder,
                                    rng::Domain::kRandomPadding, rng::Domain::kPairsPadding,
                                    rng::Domain::kConstantPadding};
constexpr v1::Split kSplits[] = {v1::SPLIT_TRAIN, v1::SPLIT_VALIDATION, v1::SPLIT_EVALUATION};

// All that may distinguish two streams.
struct Fields {
  int64_t seed;
  int domain, split, task, hops, target, pre_target;
  int64_t index;
  auto operator<=>(const Fields&) const = default;
};

v1::SequenceSpec SpecOf(const Fields& fields) {
  v1::SequenceSpec spec = testing::SpecOf("number", fields.hops);
  spec.set_seed(fields.seed);
  spec.set_split(static_cast<v1::Split>(fields.split));
  spec.mutable_window()->set_target(fields.target);
  spec.mutable_window()->set_pre_target(fields.pre_target);
  return spec;
}

rng::StreamKey KeyOf(const Fields& fields) {
  return SequenceKey(static_cast<rng::Domain>(fields.domain), static_cast<TaskNumber>(fields.task),
                     SpecOf(fields), fields.index);
}

// Reads the fields back from what goes into the cipher. That such a function exists is what makes
// the keys injective: streams with different fields have different counters or cipher keys.
Fields Decode(const rng::StreamKey& key) {
  const rng::PhiloxCounter counter = rng::FirstCounter(key);
  const rng::PhiloxKey cipher_key = rng::CipherKey(key);
  const auto bits = [&counter](int word, int first, int count) {
    return static_cast<int>(counter[word] >> first & ((uint32_t{1} << count) - 1));
  };
  Fields fields;
  fields.seed = static_cast<int64_t>(uint64_t{cipher_key[1]} << 32 | cipher_key[0]);
  fields.index = int64_t{counter[1]} | int64_t{bits(2, 0, 8)} << 32;
  fields.hops = bits(2, 8, 8);
  fields.task = bits(2, 16, 8);
  fields.split = bits(2, 24, 8);
  fields.target = bits(3, 0, 12);
  fields.pre_target = bits(3, 12, 12);
  fields.domain = bits(3, 24, 8);
  return fields;
}

TEST(SequenceKeyTest, EveryFieldCanBeReadBackFromTheCounterSoThatNoTwoStreamsMeet) {
  int keys = 0;
  for (const int64_t seed : {int64_t{0}, int64_t{42}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    for (const rng::Domain domain : kDomains) {
      for (const v1::Split split : kSplits) {
        for (const int task : {1, 2, 255}) {
          for (const int hops : {1, 2, 3, 4, 255}) {
            for (const auto& [target, pre_target] : {std::pair{8, 8}, {1, 0}, {4095, 4095}}) {
              for (const int64_t index :
                   {int64_t{0}, int64_t{1}, int64_t{1} << 32, kMaxItems - 1}) {
                const Fields fields = {
                    seed, static_cast<int>(domain), split, task, hops, target, pre_target, index};
                ASSERT_EQ(Decode(KeyOf(fields)), fields);
                ASSERT_EQ(rng::FirstCounter(KeyOf(fields))[0], 0u);
                ++keys;
              }
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(keys, 5 * 5 * 3 * 3 * 5 * 3 * 4);
}

TEST(SequenceKeyTest, StreamsOfTrainValidationAndEvaluationShareNoKey) {
  // Everything that a training run of 480,000 sequences, its validation and an evaluation of one
  // seed draw from.
  std::array<std::vector<std::pair<uint64_t, uint32_t>>, 3> keys;
  for (int split = 0; split < 3; ++split) {
    for (int hops = 1; hops <= 4; ++hops) {
      v1::SequenceSpec spec = testing::SpecOf("number", hops);
      spec.set_split(kSplits[split]);
      for (const rng::Domain domain : kDomains) {
        for (int64_t index = 0; index < 20000; ++index) {
          const rng::StreamKey key = SequenceKey(domain, TaskNumber::kNumber, spec, index);
          keys[split].emplace_back(key.low, key.high | static_cast<uint32_t>(key.domain) << 24);
        }
      }
    }
    std::sort(keys[split].begin(), keys[split].end());
    EXPECT_EQ(std::adjacent_find(keys[split].begin(), keys[split].end()), keys[split].end());
  }
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < a; ++b) {
      std::vector<std::pair<uint64_t, uint32_t>> common;
      std::set_intersection(keys[a].begin(), keys[a].end(), keys[b].begin(), keys[b].end(),
                            std::back_inserter(common));
      EXPECT_THAT(common, SizeIs(0)) << kSplits[a] << " and " << kSplits[b];
    }
  }
}

TEST(SequenceKeyTest, WindowKeyLeavesPaddingAndAddedTokensOut) {
  const rng::StreamKey key =
      SequenceKey(rng::Domain::kWindow, TaskNumber::kLetter, testing::SpecOf("letter", 2), 5);
  EXPECT_EQ(SequenceKey(rng::Domain::kWindow, TaskNumber::kLetter,
                        testing::SpecOf("letter", 2, 300, "pairs"), 5),
            key);
}

// Pins the layout: a change here changes every sequence that was ever made.
TEST(SequenceKeyTest, LayoutIsAsDocumented) {
  v1::SequenceSpec spec = testing::SpecOf("letter", 3);
  spec.mutable_window()->set_pre_target(9);
  const rng::StreamKey key = SequenceKey(rng::Domain::kRandomPadding, TaskNumber::kLetter, spec, 7);
  EXPECT_EQ(key.seed, 42);
  EXPECT_EQ(key.low, 0x0302030000000007u);
  EXPECT_EQ(key.high, 0x009008u);
}

}  // namespace
}  // namespace hopscope::engine

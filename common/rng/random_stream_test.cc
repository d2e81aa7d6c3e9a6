#include "common/rng/random_stream.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::rng {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Lt;

std::vector<uint32_t> Words(const StreamKey& key, int count) {
  RandomStream stream(key);
  std::vector<uint32_t> words(count);
  for (uint32_t& word : words) word = stream.Next();
  return words;
}

// The goldens of this file were computed by a second implementation, written from the header's text
// in Python. They must never change: every sequence that was ever made depends on them.
TEST(RandomStreamTest, WordsAreThoseOfTheDocumentedLayout) {
  const StreamKey key = {
      .seed = 42, .domain = Domain::kWindow, .low = 0x0123456789abcdef, .high = 0xfedcba};
  EXPECT_THAT(Words(key, 6),
              ElementsAre(0xe85675b2, 0x43deee92, 0x3253bba8, 0x49f2c7c3, 0x0ab8d977, 0xbae1a46f));
  EXPECT_EQ(FirstCounter(key), (PhiloxCounter{0, 0x89abcdef, 0x01234567, 0x01fedcba}));
  EXPECT_EQ(CipherKey(key), (PhiloxKey{42, 0}));
}

TEST(RandomStreamTest, NegativeSeedsAreTwosComplement) {
  EXPECT_EQ(CipherKey({.seed = -7}), (PhiloxKey{0xfffffff9, 0xffffffff}));
  EXPECT_EQ(CipherKey({.seed = int64_t{1} << 32}), (PhiloxKey{0, 1}));
}

TEST(RandomStreamTest, BoundedNumbersAreThoseOfTheDocumentedMethod) {
  RandomStream stream({.seed = -7, .domain = Domain::kItemOrder, .low = 5});
  std::vector<uint32_t> numbers;
  for (const uint32_t n :
       {1u, 2u, 3u, 10u, 120u, 960u, 4000000000u, 4000000000u, 4000000000u, 4000000000u}) {
    numbers.push_back(stream.Below(n));
  }
  EXPECT_THAT(numbers,
              ElementsAre(0, 0, 0, 3, 12, 314, 1358285125, 224057456, 2773890613, 837316097));
}

TEST(RandomStreamTest, PermutationsAreThoseOfTheDocumentedShuffle) {
  EXPECT_THAT(Permutation({.seed = 42, .domain = Domain::kItemOrder}, 10),
              ElementsAre(4, 6, 7, 0, 8, 2, 3, 9, 1, 5));
  std::vector<uint32_t> long_one =
      Permutation({.seed = 42, .domain = Domain::kItemOrder, .low = 1}, 960);
  long_one.resize(10);
  EXPECT_THAT(long_one, ElementsAre(264, 651, 318, 102, 522, 478, 311, 798, 577, 743));
}

TEST(RandomStreamTest, StreamsAreIndependentOfEachOthersProgress) {
  const StreamKey a = {.seed = 1, .low = 10};
  const StreamKey b = {.seed = 1, .low = 11};
  RandomStream stream_a(a);
  RandomStream stream_b(b);
  std::vector<uint32_t> words_a, words_b;
  for (int i = 0; i < 50; ++i) {
    words_a.push_back(stream_a.Next());
    for (int j = 0; j < 3; ++j) words_b.push_back(stream_b.Next());
  }
  EXPECT_EQ(words_a, Words(a, 50));
  EXPECT_EQ(words_b, Words(b, 150));
}

TEST(RandomStreamTest, EveryFieldOfTheKeyChangesTheFirstBlock) {
  const StreamKey base = {.seed = 42, .domain = Domain::kWindow, .low = 7, .high = 9};
  std::set<std::vector<uint32_t>> firsts = {Words(base, 4)};
  int keys = 1;
  for (int bit = 0; bit < 64; ++bit) {
    StreamKey key = base;
    key.seed ^= int64_t(uint64_t{1} << bit);
    firsts.insert(Words(key, 4));
    key = base;
    key.low ^= uint64_t{1} << bit;
    firsts.insert(Words(key, 4));
    keys += 2;
  }
  for (int bit = 0; bit < 24; ++bit, ++keys) {
    StreamKey key = base;
    key.high ^= uint32_t{1} << bit;
    firsts.insert(Words(key, 4));
  }
  for (const Domain domain : {Domain::kItemOrder, Domain::kRandomPadding, Domain::kPairsPadding,
                              Domain::kConstantPadding}) {
    StreamKey key = base;
    key.domain = domain;
    firsts.insert(Words(key, 4));
    ++keys;
  }
  EXPECT_EQ(firsts.size(), static_cast<size_t>(keys));
}

TEST(RandomStreamTest, BoundedNumbersAreUniform) {
  // Chi-square with n-1 degrees of freedom, bound at mean + 5 standard deviations.
  for (const uint32_t n : {2u, 3u, 8u, 16u, 120u, 1000u}) {
    RandomStream stream({.seed = 3, .low = n});
    const int draws = 200000;
    std::vector<int> counts(n);
    for (int i = 0; i < draws; ++i) {
      const uint32_t value = stream.Below(n);
      ASSERT_LT(value, n);
      ++counts[value];
    }
    const double expected = double(draws) / n;
    double chi_square = 0;
    for (const int count : counts) chi_square += (count - expected) * (count - expected) / expected;
    EXPECT_LT(chi_square, (n - 1) + 5 * std::sqrt(2.0 * (n - 1))) << n;
  }
}

// With n = 3 * 2^30 a biased multiply-shift would hit results that are 0 mod 3 with probability 1/2
// instead of 1/3.
TEST(RandomStreamTest, LargeBoundsAreNotBiased) {
  RandomStream stream({.seed = 4});
  const int draws = 100000;
  int multiples = 0;
  for (int i = 0; i < draws; ++i) multiples += stream.Below(3u << 30) % 3 == 0;
  EXPECT_NEAR(multiples / double(draws), 1.0 / 3, 5 * std::sqrt(2.0 / 9 / draws));
}

TEST(RandomStreamTest, BelowOneIsZero) {
  RandomStream stream({.seed = 5});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(stream.Below(1), 0u);
}

TEST(PermutationTest, HoldsEveryNumberOnce) {
  for (const uint32_t n : {0u, 1u, 2u, 512u, 960u, 5000u}) {
    std::vector<uint32_t> values = Permutation({.seed = 6, .low = n}, n);
    ASSERT_EQ(values.size(), n);
    std::sort(values.begin(), values.end());
    for (uint32_t i = 0; i < n; ++i) ASSERT_EQ(values[i], i);
  }
}

TEST(PermutationTest, EveryOrderOfFourIsEquallyLikely) {
  std::vector<int> counts(256);
  const int draws = 24000;
  for (int i = 0; i < draws; ++i) {
    const std::vector<uint32_t> p = Permutation({.seed = 7, .low = static_cast<uint64_t>(i)}, 4);
    ++counts[p[0] * 64 + p[1] * 16 + p[2] * 4 + p[3]];
  }
  counts.erase(std::remove(counts.begin(), counts.end(), 0), counts.end());
  ASSERT_EQ(counts.size(), 24u);
  double chi_square = 0;
  for (const int count : counts) chi_square += (count - 1000.0) * (count - 1000.0) / 1000;
  EXPECT_LT(chi_square, 23 + 5 * std::sqrt(46.0));
}

}  // namespace
}  // namespace hopscope::rng

#include "common/rng/philox.h"

#include <bit>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::rng {
namespace {

// Rows "philox4x32 10" of the file kat_vectors of the Random123 distribution.
TEST(PhiloxTest, MatchesTheKnownAnswersOfRandom123) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, EachBitOfCounterAndKeyChangesAboutHalfOfTheOutput) {
  const PhiloxCounter base = Philox4x32({1, 2, 3, 4}, {5, 6});
  for (int bit = 0; bit < 192; ++bit) {
    PhiloxCounter counter = {1, 2, 3, 4};
    PhiloxKey key = {5, 6};
    (bit < 128 ? counter[bit / 32] : key[bit / 32 - 4]) ^= uint32_t{1} << (bit % 32);
    const PhiloxCounter other = Philox4x32(counter, key);
    int changed = 0;
    for (int word = 0; word < 4; ++word) changed += std::popcount(base[word] ^ other[word]);
    // Binomial(128, 1/2): mean 64, standard deviation 5.7.
    EXPECT_GT(changed, 34) << "bit " << bit;
    EXPECT_LT(changed, 94) << "bit " << bit;
  }
}

TEST(PhiloxTest, DifferentCountersGiveDifferentBlocks) {
  std::set<PhiloxCounter> blocks;
  for (uint32_t i = 0; i < 10000; ++i) blocks.insert(Philox4x32({i, 0, i << 24, 0}, {42, 0}));
  EXPECT_EQ(blocks.size(), 10000u);
}

}  // namespace
}  // namespace hopscope::rng

// What holds for every head, on thousands of random ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "worker/engine/scorers/block_swaps.h"
#include "worker/engine/scorers/exclusion.h"
#include "worker/engine/scorers/swap_scores.h"
#include "worker/engine/scorers/testing/matrix_logits.h"

namespace hopscope::engine {
namespace {

using Matrix = std::vector<std::vector<double>>;  // [content][slot]

const std::vector<double>& Taus() {
  static const auto* const taus = new std::vector<double>{1e-4, 0.05, 1};
  return *taus;
}

constexpr SwapExtras kEverything{.centred = true, .guard = true};

std::vector<double> Diagonal(const Matrix& a) {
  std::vector<double> own;
  for (size_t j = 0; j < a.size(); ++j) own.push_back(a[j][j]);
  return own;
}

HeadScores Scores(const Matrix& a, double self, const SwapExtras& extras = kEverything) {
  const std::vector<double> own = Diagonal(a);
  MatrixLogits<double> moved(a);
  SwapScratch<double> scratch;
  HeadScores scores;
  EXPECT_TRUE(ComputeSwapScores<double>(own.data(), static_cast<int64_t>(own.size()), self, Taus(),
                                        &moved, nullptr, &scratch, &scores, extras));
  return scores;
}

HeadScores BlockScores(const Matrix& a, double self, const KeyBlocks& blocks,
                       const SwapExtras& extras = kEverything) {
  const std::vector<double> own = Diagonal(a);
  MatrixLogits<double> moved(a);
  HeadScores scores;
  EXPECT_TRUE(ComputeBlockScores<double>(own.data(), static_cast<int64_t>(own.size()), self, blocks,
                                         Taus(), extras, &moved, nullptr, &scores));
  return scores;
}

double Bound(const Matrix& a) {
  const std::vector<double> own = Diagonal(a);
  MatrixLogits<double> moved(a);
  SwapScratch<double> scratch;
  double bound = 0;
  EXPECT_TRUE(ComputeExclusionBound<double>(own.data(), static_cast<int64_t>(own.size()), &moved,
                                            nullptr, &scratch, &bound));
  return bound;
}

// A random head of 2 to 12 keys: how sharp it is, and how much of a logit the slot and the content
// decide, differ from head to head.
struct RandomHead {
  Matrix a;
  double self = 0;
};

RandomHead MakeHead(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const size_t keys = 2 + random() % 11;
  const double spreads[] = {0.01, 0.3, 1, 3, 10};
  const double by_slot = spreads[random() % 5];
  const double by_content = spreads[random() % 5];
  const double by_both = spreads[random() % 5];
  std::vector<double> slots(keys), contents(keys);
  for (double& x : slots) x = by_slot * normal(random);
  for (double& x : contents) x = by_content * normal(random);
  RandomHead head{.a = Matrix(keys, std::vector<double>(keys)), .self = normal(random)};
  for (size_t a = 0; a < keys; ++a) {
    for (size_t p = 0; p < keys; ++p) {
      head.a[a][p] = slots[p] + contents[a] + by_both * normal(random);
    }
  }
  return head;
}

constexpr uint64_t kHeads = 4000;

// All of the means of two results, the same to `tolerance`.
void ExpectSame(const SwapMeans& a, const SwapMeans& b, double tolerance, uint64_t seed) {
  const auto same = [&](const std::vector<double>& x, const std::vector<double>& y) {
    ASSERT_EQ(x.size(), y.size());
    for (size_t t = 0; t < x.size(); ++t) EXPECT_NEAR(x[t], y[t], tolerance) << "head " << seed;
  };
  same(a.positional, b.positional);
  same(a.symbolic, b.symbolic);
  same(a.positional_centred, b.positional_centred);
  same(a.symbolic_centred, b.symbolic_centred);
  same(a.swapped_mass, b.swapped_mass);
  same(a.contrast, b.contrast);
}

TEST(SwapPropertiesTest, ScoresStayInTheirRange) {
  constexpr double kRounding = 1e-12;
  const auto between = [](const std::vector<double>& values, double low) {
    for (const double value : values) {
      EXPECT_GE(value, low - kRounding);
      EXPECT_LE(value, 1 + kRounding);
    }
  };
  for (uint64_t seed = 0; seed < kHeads; ++seed) {
    const RandomHead head = MakeHead(seed);
    const SwapMeans means = Scores(head.a, head.self).means;
    between(means.positional, 0);
    between(means.symbolic, 0);
    between(means.positional_centred, -1);
    between(means.symbolic_centred, -1);
    between(means.swapped_mass, 0);
    between(means.contrast, 0);
  }
}

TEST(SwapPropertiesTest, FastLoopAndDetailedOneAgree) {
  for (uint64_t seed = 0; seed < kHeads; ++seed) {
    const RandomHead head = MakeHead(seed);
    const SwapMeans fast = Scores(head.a, head.self, {}).means;
    const SwapMeans detailed = Scores(head.a, head.self).means;
    for (size_t t = 0; t < Taus().size(); ++t) {
      EXPECT_NEAR(fast.positional[t], detailed.positional[t], 1e-12) << "head " << seed;
      EXPECT_NEAR(fast.symbolic[t], detailed.symbolic[t], 1e-12) << "head " << seed;
    }
  }
}

TEST(SwapPropertiesTest, NamesOfKeysDoNotMatter) {
  for (uint64_t seed = 0; seed < kHeads; ++seed) {
    const RandomHead head = MakeHead(seed);
    std::vector<size_t> names(head.a.size());
    std::iota(names.begin(), names.end(), 0);
    std::mt19937_64 random(seed + 1);
    std::shuffle(names.begin(), names.end(), random);
    Matrix renamed = head.a;
    for (size_t a = 0; a < names.size(); ++a) {
      for (size_t p = 0; p < names.size(); ++p) renamed[names[a]][names[p]] = head.a[a][p];
    }
    // At tau 1e-4 rounding in D is multiplied by 1e4.
    ExpectSame(Scores(head.a, head.self).means, Scores(renamed, head.self).means, 1e-9, seed);
  }
}

TEST(SwapPropertiesTest, SharpHeadsScoreOneAndZero) {
  // One key has nearly all attention, by its slot or by its content.
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    std::mt19937_64 random(seed);
    const size_t keys = 3 + random() % 10;
    const size_t favourite = random() % keys;
    Matrix by_slot(keys, std::vector<double>(keys, 0));
    Matrix by_content = by_slot;
    for (size_t other = 0; other < keys; ++other) {
      by_slot[other][favourite] = 40;
      by_content[favourite][other] = 40;
    }
    const SwapMeans positional = Scores(by_slot, 0).means;
    const SwapMeans symbolic = Scores(by_content, 0).means;
    // Swaps of two keys without attention score 1 on both; at larger taus they count a little.
    EXPECT_NEAR(positional.positional[0], 1, 1e-12);
    EXPECT_NEAR(positional.symbolic[0], 0, 1e-12);
    EXPECT_NEAR(symbolic.positional[0], 0, 1e-12);
    EXPECT_NEAR(symbolic.symbolic[0], 1, 1e-12);
  }
}

TEST(SwapPropertiesTest, HeadsBuiltToBeOneKindScoreExactlyOne) {
  for (uint64_t seed = 0; seed < kHeads; ++seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal(0, 3);
    const size_t keys = 2 + random() % 11;
    Matrix by_slot(keys, std::vector<double>(keys));
    Matrix by_content = by_slot;
    for (size_t key = 0; key < keys; ++key) {
      const double logit = normal(random);
      for (size_t other = 0; other < keys; ++other) {
        by_slot[other][key] = logit;
        by_content[key][other] = logit;
      }
    }
    const double self = normal(random);
    const SwapMeans positional = Scores(by_slot, self).means;
    const SwapMeans symbolic = Scores(by_content, self).means;
    for (size_t t = 0; t < Taus().size(); ++t) {
      EXPECT_NEAR(positional.positional[t], 1, 1e-12);
      EXPECT_NEAR(symbolic.symbolic[t], 1, 1e-12);
      // Both kinds have the same attention, so each fails the other's test equally.
      EXPECT_NEAR(positional.symbolic[t], symbolic.positional[t], 1e-12);
    }
  }
}

TEST(SwapPropertiesTest, UniformHeadsAreBothAndCentredNeither) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(0, 5);
  for (size_t keys = 2; keys < 40; ++keys) {
    const double logit = normal(random);
    const Matrix a(keys, std::vector<double>(keys, logit));
    const SwapMeans means = Scores(a, logit).means;
    for (size_t t = 0; t < Taus().size(); ++t) {
      EXPECT_NEAR(means.positional[t], 1, 1e-14);
      EXPECT_NEAR(means.symbolic[t], 1, 1e-14);
      EXPECT_EQ(means.positional_centred[t], 0);
      EXPECT_EQ(means.symbolic_centred[t], 0);
      EXPECT_EQ(means.contrast[t], 0);
      EXPECT_NEAR(means.swapped_mass[t], 2.0 / static_cast<double>(keys + 1), 1e-14);
    }
  }
}

// Every swap with a whole softmax before and after it.
TEST(SwapPropertiesTest, DetailsAreTheirDefinition) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const RandomHead head = MakeHead(seed);
    const size_t m = head.a.size();
    const double c = 1 / static_cast<double>(m + 1);
    constexpr double kEps = 1e-3;
    const auto softmax = [&](std::vector<double> row) {
      row.push_back(head.self);
      const double top = *std::max_element(row.begin(), row.end());
      double total = 0;
      for (double& x : row) total += x = std::exp(x - top);
      for (double& x : row) x /= total;
      return row;
    };
    const std::vector<double> own = Diagonal(head.a);
    const std::vector<double> d = softmax(own);
    const auto [least, most] = std::minmax_element(d.begin(), d.end() - 1);
    const auto cosine = [](double a, double b, double x, double y, double eps) {
      const double norms = std::max(std::hypot(a, b), eps) * std::max(std::hypot(x, y), eps);
      return norms > 0 ? (a * x + b * y) / norms : 0;
    };
    SwapMeans sums;
    sums.Fill(0, Taus().size(), kEverything);
    std::vector<double> clamped(Taus().size(), 0);
    std::vector<double> weight(Taus().size(), 0);
    for (size_t i = 0; i < m; ++i) {
      for (size_t j = i + 1; j < m; ++j) {
        std::vector<double> swapped = own;
        swapped[i] = head.a[j][i];
        swapped[j] = head.a[i][j];
        const std::vector<double> after = softmax(swapped);
        for (size_t t = 0; t < Taus().size(); ++t) {
          const double alpha = std::exp((std::abs(d[i] - d[j]) - (*most - *least)) / Taus()[t]);
          weight[t] += alpha;
          sums.positional_centred[t] +=
              alpha * cosine(after[i] - c, after[j] - c, d[i] - c, d[j] - c, 0);
          sums.symbolic_centred[t] +=
              alpha * cosine(after[i] - c, after[j] - c, d[j] - c, d[i] - c, 0);
          sums.swapped_mass[t] += alpha * (d[i] + d[j]);
          sums.contrast[t] += alpha * std::abs(d[i] - d[j]) / (d[i] + d[j]);
          clamped[t] += alpha * cosine(after[i], after[j], d[i], d[j], kEps);
        }
      }
    }
    const SwapMeans got = Scores(head.a, head.self).means;
    const SwapMeans got_clamped = Scores(head.a, head.self, {.eps = kEps}).means;
    for (size_t t = 0; t < Taus().size(); ++t) {
      EXPECT_NEAR(got.positional_centred[t], sums.positional_centred[t] / weight[t], 1e-9) << seed;
      EXPECT_NEAR(got.symbolic_centred[t], sums.symbolic_centred[t] / weight[t], 1e-9) << seed;
      EXPECT_NEAR(got.swapped_mass[t], sums.swapped_mass[t] / weight[t], 1e-9) << seed;
      EXPECT_NEAR(got.contrast[t], sums.contrast[t] / weight[t], 1e-9) << seed;
      EXPECT_NEAR(got_clamped.positional[t], clamped[t] / weight[t], 1e-9) << seed;
    }
  }
}

TEST(BlockPropertiesTest, BlocksOfOneKeyAreKeys) {
  for (uint64_t seed = 0; seed < kHeads; ++seed) {
    const RandomHead head = MakeHead(seed);
    KeyBlocks blocks;
    for (size_t key = 0; key < head.a.size(); ++key) blocks.emplace_back(key, key + 1);
    const SwapExtras extras{.eps = seed % 2 == 0 ? 0 : 1e-3, .centred = true, .guard = true};
    const HeadScores tokens = Scores(head.a, head.self, extras);
    const HeadScores by_block = BlockScores(head.a, head.self, blocks, extras);
    ExpectSame(tokens.means, by_block.means, 1e-9, seed);
    EXPECT_NEAR(tokens.self_mass, by_block.self_mass, 1e-12);
    EXPECT_EQ(by_block.swapped, tokens.swapped);
  }
}

TEST(BlockPropertiesTest, EqualBlocksLeaveTheRemainderInFront) {
  EXPECT_EQ(EqualBlocks(0, 9, 4), (KeyBlocks{{1, 3}, {3, 5}, {5, 7}, {7, 9}}));
  EXPECT_EQ(EqualBlocks(2, 9, 3), (KeyBlocks{{3, 5}, {5, 7}, {7, 9}}));
  EXPECT_EQ(EqualBlocks(0, 2, 2), (KeyBlocks{{0, 1}, {1, 2}}));
  EXPECT_EQ(EqualBlocks(0, 3, 4), KeyBlocks{});
  EXPECT_EQ(EqualBlocks(3, 2, 1), KeyBlocks{});
}

TEST(BlockPropertiesTest, FewerThanTwoBlocksHaveNoScores) {
  const Matrix a(4, std::vector<double>(4, 1));
  EXPECT_FALSE(BlockScores(a, 1, {}).has_swaps);
  EXPECT_FALSE(BlockScores(a, 1, {{0, 2}}).has_swaps);
  EXPECT_NEAR(BlockScores(a, 1, {}).self_mass, 0.2, 1e-15);
}

TEST(BlockPropertiesTest, NotANumberStaysVisible) {
  Matrix a(4, std::vector<double>(4, 1));
  a[3][1] = std::nan("");
  const KeyBlocks halves = {{0, 2}, {2, 4}};
  EXPECT_TRUE(std::isnan(BlockScores(a, 1, halves).means.positional[0]));
  a[3][1] = 1;
  a[0][0] = std::nan("");
  EXPECT_TRUE(std::isnan(BlockScores(a, 1, halves).means.symbolic[0]));
  EXPECT_TRUE(std::isnan(BlockScores(a, 1, halves).self_mass));
}

TEST(ExclusionTest, TheBoundHolds) {
  for (uint64_t seed = 0; seed < kHeads; ++seed) {
    const RandomHead head = MakeHead(seed);
    const double bound = Bound(head.a);
    const std::vector<double> own = Diagonal(head.a);
    EXPECT_LE(LogitVariance(own.data(), static_cast<int64_t>(own.size())), bound * (1 + 1e-12));
  }
}

TEST(ExclusionTest, TheBoundIsTheSumOverAllPermutations) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    RandomHead head = MakeHead(seed);
    const size_t m = std::min<size_t>(head.a.size(), 4);
    head.a.resize(m);
    for (auto& row : head.a) row.resize(m);
    std::vector<size_t> pi(m);
    std::iota(pi.begin(), pi.end(), 0);
    double sum = 0;
    double permutations = 0;
    do {
      ++permutations;
      for (size_t j = 0; j < m; ++j) {
        const double own = head.a[j][j];
        sum += std::pow(head.a[pi[j]][j] - own, 2) + std::pow(head.a[j][pi[j]] - own, 2);
      }
    } while (std::next_permutation(pi.begin(), pi.end()));
    const double expected = sum / (permutations * static_cast<double>(m));
    EXPECT_NEAR(Bound(head.a), expected, 1e-12 * (1 + expected)) << "head " << seed;
  }
}

TEST(ExclusionTest, UniformHeadsReachTheBound) {
  const Matrix a(5, std::vector<double>(5, 2.5));
  EXPECT_EQ(Bound(a), 0);
  EXPECT_EQ(LogitVariance(Diagonal(a).data(), 5), 0);
  EXPECT_EQ(LogitVariance(nullptr, 0), 0);
}

TEST(ExclusionTest, TilesJoin) {
  const Matrix a = RandomLogits(260, 1, 3);
  double sum = 0;
  for (size_t c = 0; c < a.size(); ++c) {
    for (size_t p = 0; p < a.size(); ++p) {
      sum += std::pow(a[c][p] - a[p][p], 2) + std::pow(a[c][p] - a[c][c], 2);
    }
  }
  EXPECT_NEAR(Bound(a), sum / (260.0 * 260), 1e-9);
}

}  // namespace
}  // namespace hopscope::engine

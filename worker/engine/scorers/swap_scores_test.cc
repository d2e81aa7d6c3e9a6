#include "worker/engine/scorers/swap_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "worker/engine/scorers/testing/matrix_logits.h"

namespace hopscope::engine {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;

struct Result {
  HeadScores scores;
  int blocks = 0;
  int64_t logits = 0;  // computed, without those of the swapped direction
};

template <typename T = double>
Result Scores(const std::vector<std::vector<double>>& a, double self,
              const std::vector<double>& taus) {
  std::vector<double> own;
  for (size_t j = 0; j < a.size(); ++j) own.push_back(a[j][j]);
  MatrixLogits<T> moved(a);
  SwapScratch<T> scratch;
  Result result;
  EXPECT_TRUE(ComputeSwapScores<T>(own.data(), static_cast<int64_t>(own.size()), self, taus, &moved,
                                   nullptr, &scratch, &result.scores));
  result.blocks = moved.blocks;
  result.logits = moved.logits;
  return result;
}

// The definition, word for word: all swaps, whole attention rows before and after.
std::pair<double, double> Literal(const std::vector<std::vector<double>>& a, double self,
                                  double tau) {
  const size_t m = a.size();
  const auto softmax = [&](const std::vector<double>& logits) {
    double top = self;
    for (const double l : logits) top = std::max(top, l);
    double total = std::exp(self - top);
    std::vector<double> row;
    for (const double l : logits) row.push_back(std::exp(l - top));
    for (const double w : row) total += w;
    for (double& w : row) w /= total;
    return row;
  };
  std::vector<double> own;
  for (size_t j = 0; j < m; ++j) own.push_back(a[j][j]);
  const std::vector<double> d = softmax(own);
  double largest = 0;
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = i + 1; j < m; ++j) largest = std::max(largest, std::abs(d[i] - d[j]));
  }
  double weight = 0, positional = 0, symbolic = 0;
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = i + 1; j < m; ++j) {
      std::vector<double> swapped = own;
      swapped[i] = a[j][i];
      swapped[j] = a[i][j];
      const std::vector<double> after = softmax(swapped);
      const double norms = std::hypot(after[i], after[j]) * std::hypot(d[i], d[j]);
      const double alpha = std::exp((std::abs(d[i] - d[j]) - largest) / tau);
      weight += alpha;
      positional += alpha * (after[i] * d[i] + after[j] * d[j]) / norms;
      symbolic += alpha * (after[i] * d[j] + after[j] * d[i]) / norms;
    }
  }
  return {positional / weight, symbolic / weight};
}

TEST(SwapScoresTest, GiveTheWorkedExample) {
  const Result result =
      Scores({{1.0, 0.2, -0.5}, {0.3, 2.0, 0.1}, {-1.0, 0.4, 0.5}}, 0, {1e-4, 0.05, 0.1, 1.0});
  ASSERT_TRUE(result.scores.has_swaps);
  EXPECT_THAT(result.scores.means.positional,
              ElementsAre(DoubleNear(0.9138763140, 1e-9), DoubleNear(0.9094256022, 1e-9),
                          DoubleNear(0.9050435405, 1e-9), DoubleNear(0.8967793917, 1e-9)));
  EXPECT_THAT(result.scores.means.symbolic,
              ElementsAre(DoubleNear(0.7559687923, 1e-9), DoubleNear(0.7831150357, 1e-9),
                          DoubleNear(0.8111518270, 1e-9), DoubleNear(0.8811137820, 1e-9)));
  EXPECT_NEAR(result.scores.self_mass, 0.07839411721683971, 1e-12);
}

TEST(SwapScoresTest, UniformHeadIsBoth) {
  const Result result = Scores(std::vector(4, std::vector<double>(4, 0)), -1e9, {1e-4, 1});
  EXPECT_THAT(result.scores.means.positional, Each(DoubleNear(1, 1e-15)));
  EXPECT_THAT(result.scores.means.symbolic, Each(DoubleNear(1, 1e-15)));
}

TEST(SwapScoresTest, HeadThatSeesSlotsAloneIsPositional) {
  const Result result = Scores(std::vector(4, std::vector<double>{0, 0, 5, 0}), -1e9, {1e-4});
  EXPECT_NEAR(result.scores.means.positional[0], 1, 1e-15);
  EXPECT_NEAR(result.scores.means.symbolic[0], 0.0134752822, 1e-9);
}

TEST(SwapScoresTest, HeadThatSeesContentAloneIsSymbolic) {
  std::vector<std::vector<double>> a(4, std::vector<double>(4, 0));
  a[1].assign(4, 5);
  const Result result = Scores(a, -1e9, {1e-4});
  EXPECT_NEAR(result.scores.means.positional[0], 0.0134752822, 1e-9);
  EXPECT_NEAR(result.scores.means.symbolic[0], 1, 1e-15);
}

TEST(SwapScoresTest, AgreeWithTheDefinition) {
  // From flat to one key that has all; one block and several.
  for (const int keys : {2, 3, 7, 8, 9, 16, 127, 129, 260}) {
    for (const double spread : {0.01, 1.0, 4.0}) {
      if (keys > 200 && spread != 1) continue;
      const auto a = RandomLogits(keys, spread, keys);
      const std::vector<double> taus = {1e-4, 0.05, 1.0};
      const Result result = Scores(a, 0.5, taus);
      for (size_t t = 0; t < taus.size(); ++t) {
        const auto [positional, symbolic] = Literal(a, 0.5, taus[t]);
        EXPECT_NEAR(result.scores.means.positional[t], positional, 1e-9)
            << keys << " keys, spread " << spread << ", tau " << taus[t];
        EXPECT_NEAR(result.scores.means.symbolic[t], symbolic, 1e-9)
            << keys << " keys, spread " << spread << ", tau " << taus[t];
      }
    }
  }
}

TEST(SwapScoresTest, Float32LogitsChangeLittle) {
  const auto a = RandomLogits(40, 2, 7);
  const Result narrow = Scores<float>(a, 0.5, {1e-4, 1});
  const Result wide = Scores<double>(a, 0.5, {1e-4, 1});
  for (const int t : {0, 1}) {
    EXPECT_NEAR(narrow.scores.means.positional[t], wide.scores.means.positional[t], 1e-6);
    EXPECT_NEAR(narrow.scores.means.symbolic[t], wide.scores.means.symbolic[t], 1e-6);
  }
}

TEST(SwapScoresTest, LargeLogitsDoNotOverflow) {
  const Result result = Scores({{900, -900, 3}, {800, -800, 5}, {-900, 900, 2}}, 0, {1e-4, 1});
  for (const int t : {0, 1}) {
    EXPECT_TRUE(std::isfinite(result.scores.means.positional[t]));
    EXPECT_TRUE(std::isfinite(result.scores.means.symbolic[t]));
  }
}

TEST(SwapScoresTest, TinyTauLeavesTheLargestSwap) {
  const auto a = RandomLogits(6, 1, 3);
  const Result tiny = Scores(a, 0, {1e-310});
  const auto [positional, symbolic] = Literal(a, 0, 1e-9);
  EXPECT_NEAR(tiny.scores.means.positional[0], positional, 1e-9);
  EXPECT_NEAR(tiny.scores.means.symbolic[0], symbolic, 1e-9);
}

TEST(SwapScoresTest, SharpHeadNeedsFewBlocks) {
  // One key takes nearly everything: only swaps with it have weight.
  auto a = RandomLogits(400, 0.1, 5);
  a[200][200] = 12;
  const Result result = Scores(a, 0, {1e-4});
  EXPECT_LE(result.blocks, 4);    // of 10
  EXPECT_LE(result.logits, 800);  // of 160,000
  const auto [positional, symbolic] = Literal(a, 0, 1e-4);
  EXPECT_NEAR(result.scores.means.positional[0], positional, 1e-9);
  EXPECT_NEAR(result.scores.means.symbolic[0], symbolic, 1e-9);
}

TEST(SwapScoresTest, FewerThanTwoKeysHaveNoScores) {
  EXPECT_FALSE(Scores({{1.0}}, 1.0, {1.0}).scores.has_swaps);
  EXPECT_NEAR(Scores({{1.0}}, 1.0, {1.0}).scores.self_mass, 0.5, 1e-15);
  EXPECT_FALSE(Scores({}, 0, {1.0}).scores.has_swaps);
  EXPECT_EQ(Scores({}, 0, {1.0}).scores.self_mass, 1);
}

TEST(SwapScoresTest, NotANumberStaysVisible) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  auto a = RandomLogits(5, 1, 1);
  a[2][2] = nan;
  EXPECT_TRUE(std::isnan(Scores(a, 0, {1.0}).scores.means.positional[0]));
  EXPECT_TRUE(std::isnan(Scores(RandomLogits(5, 1, 1), nan, {1.0}).scores.self_mass));
  a = RandomLogits(5, 1, 1);
  a[1][3] = nan;
  EXPECT_TRUE(std::isnan(Scores(a, 0, {1.0}).scores.means.symbolic[0]));
}

TEST(SwapScoresTest, CancelledWorkSaysSo) {
  CancelFlag cancel;
  cancel.Cancel();
  MatrixLogits<double> moved(RandomLogits(5, 1, 1));
  SwapScratch<double> scratch;
  HeadScores scores;
  const double own[5] = {};
  EXPECT_FALSE(ComputeSwapScores<double>(own, 5, 0, {1.0}, &moved, &cancel, &scratch, &scores));
}

}  // namespace
}  // namespace hopscope::engine

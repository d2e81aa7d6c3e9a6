#include "worker/engine/theory/gaps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numbers>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace hopscope::engine {
namespace {

constexpr double kTolerance = 1e-12;

nlohmann::json Golden() {
  std::ifstream file(HOPSCOPE_SOURCE_DIR "/tests/golden/theory/theory.json");
  return nlohmann::json::parse(file);
}

double Smallest(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

TEST(IndexGaps, AgreeWithReferenceData) {
  const nlohmann::json golden = Golden();
  const double theta = golden.at("theta_index");
  ASSERT_GE(golden.at("index").size(), 8U);
  for (const auto& [key, expected] : golden.at("index").items()) {
    const int64_t n = std::stoll(key);
    const std::vector<double> gaps = IndexGaps(theta, n);
    ASSERT_EQ(gaps.size(), expected.at("gap_per_offset").size());
    for (int64_t s = 0; s < n; ++s) {
      EXPECT_NEAR(gaps[s], expected.at("gap_per_offset")[s].get<double>(), kTolerance)
          << n << " " << s;
      EXPECT_NEAR(IndexGapBound(theta, n, s),
                  expected.at("corrected_bound_per_offset")[s].get<double>(), kTolerance)
          << n << " " << s;
    }
    EXPECT_NEAR(Smallest(gaps), expected.at("worst_gap").get<double>(), kTolerance) << n;
  }
}

TEST(IndexGaps, HaveThePublishedFigures) {
  EXPECT_NEAR(Smallest(IndexGaps(0.8, 2)), 0.303, 5e-4);
  EXPECT_NEAR(Smallest(IndexGaps(0.8, 8)), 0.2244, 5e-5);
  EXPECT_NEAR(Smallest(IndexGaps(0.8, 16)), 0.0068, 5e-5);
  EXPECT_NEAR(Smallest(IndexGaps(0.8, 64)), 0.00016, 5e-6);
}

// Every offset of every length, against all other offsets.
TEST(IndexGaps, StayBelowTheBoundWhateverTheAngle) {
  for (const double theta : {0.1, 0.5, 0.8, 0.866, 1.0, std::numbers::pi / 4, 2.0, 3.0}) {
    for (int64_t n = 2; n < 200; ++n) {
      const std::vector<double> gaps = IndexGaps(theta, n);
      for (int64_t s = 0; s < n; ++s) {
        double second = -2;
        for (int64_t t = 0; t < n; ++t) {
          if (t != s) second = std::max(second, std::cos(static_cast<double>(t - s) * theta));
        }
        ASSERT_NEAR(gaps[s], 1 - second, 1e-15) << theta << " " << n << " " << s;
        ASSERT_LE(gaps[s], IndexGapBound(theta, n, s) + 1e-15) << theta << " " << n << " " << s;
      }
    }
  }
}

TEST(IndexGaps, VanishWhereTheAngleDividesTheCircle) {
  EXPECT_GT(Smallest(IndexGaps(std::numbers::pi / 4, 8)), 0.2);
  EXPECT_NEAR(Smallest(IndexGaps(std::numbers::pi / 4, 9)), 0, 1e-15);
}

TEST(IndexGaps, ExceedTheBoundWithoutItsCorrection) {
  const int64_t n = 64;
  const std::vector<double> gaps = IndexGaps(0.8, n);
  const double printed = 2 * std::numbers::pi * std::numbers::pi / (64.0 * 64.0);
  EXPECT_GT(*std::max_element(gaps.begin(), gaps.end()), printed);
  EXPECT_LT(gaps[0], printed);
}

TEST(RetrievalGaps, AgreeWithReferenceData) {
  const nlohmann::json golden = Golden();
  const double theta = golden.at("theta_retrieval");
  const int64_t letters = golden.at("letters");
  ASSERT_GE(golden.at("retrieval").size(), 8U);
  for (const auto& [key, expected] : golden.at("retrieval").items()) {
    const int64_t n = std::stoll(key);
    const RetrievalGap worst = WorstRetrievalGap(theta, letters, n);
    EXPECT_NEAR(worst.gap, expected.at("worst_gap").get<double>(), kTolerance) << n;
    const auto& input = expected.at("worst_input");
    EXPECT_EQ(worst.match_offset, input.at("match_offset").get<int64_t>()) << n;
    EXPECT_EQ(worst.competitor_offset, input.at("competitor_offset").get<int64_t>()) << n;
    EXPECT_EQ(worst.letter_difference, input.at("letter_difference").get<int64_t>()) << n;
    EXPECT_NEAR(RetrievalGapBound(theta, letters, n),
                expected.at("tight_n_minus_1_bound").get<double>(), kTolerance)
        << n;
    EXPECT_EQ(static_cast<double>(n) < RetrievalReach(theta, letters),
              expected.at("sufficient_condition_positive").get<bool>());
  }
  EXPECT_NEAR(RetrievalReach(theta, letters), golden.at("retrieval_zero_gap_n").get<double>(),
              1e-9);
}

TEST(RetrievalGaps, HaveThePublishedFigures) {
  for (const auto& [n, gap] : {std::pair{17, .2622}, {32, .2330}, {64, .1694}, {100, .0964}}) {
    EXPECT_NEAR(WorstRetrievalGap(0.0027, 8, n).gap, gap, 5e-5) << n;
  }
  EXPECT_GT(WorstRetrievalGap(0.0027, 8, 146).gap, 0);
  EXPECT_LT(WorstRetrievalGap(0.0027, 8, 148).gap, 0);
}

// Over every place of the match, of a competitor and every letter of it.
TEST(RetrievalGaps, AreThoseOfAnExhaustiveSearchAndStayBelowTheBound) {
  for (const int64_t letters : {2, 3, 8, 26}) {
    const double omega = 2 * std::numbers::pi / static_cast<double>(letters);
    for (const double theta : {0.0, 0.0027, 0.01, 0.05}) {
      for (int64_t n = 2; n < 60; ++n) {
        double worst = 3;
        for (int64_t m = 0; m < n; ++m) {
          for (int64_t c = 0; c < n; ++c) {
            for (int64_t d = 1; c != m && d < letters; ++d) {
              worst = std::min(worst, std::cos(static_cast<double>(m) * theta) -
                                          std::cos(static_cast<double>(d) * omega +
                                                   static_cast<double>(c) * theta));
            }
          }
        }
        ASSERT_NEAR(WorstRetrievalGap(theta, letters, n).gap, worst, 1e-15)
            << letters << " " << theta << " " << n;
        ASSERT_LE(worst, RetrievalGapBound(theta, letters, n) + 1e-15)
            << letters << " " << theta << " " << n;
        if (static_cast<double>(n) < RetrievalReach(theta, letters)) {
          ASSERT_GT(worst, 0);
        }
      }
    }
  }
}

TEST(RetrievalGaps, DoNotShrinkWithoutRotation) {
  EXPECT_NEAR(WorstRetrievalGap(0, 8, 2).gap, 0.2929, 5e-5);
  EXPECT_EQ(WorstRetrievalGap(0, 8, 5000).gap, WorstRetrievalGap(0, 8, 2).gap);
}

}  // namespace
}  // namespace hopscope::engine

#include "worker/engine/theory/gaps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace hopscope::engine {
namespace {

double Omega(int64_t letters) { return 2 * std::numbers::pi / static_cast<double>(letters); }

}  // namespace

std::vector<double> IndexGaps(double theta, int64_t n) {
  // largest[k]: the largest of cos(theta), ..., cos(k theta). From offset s the other offsets lie
  // up to s on one side and up to n-1-s on the other, and the cosine is even.
  std::vector<double> largest(n, -std::numeric_limits<double>::infinity());
  for (int64_t k = 1; k < n; ++k) {
    largest[k] = std::max(largest[k - 1], std::cos(static_cast<double>(k) * theta));
  }
  std::vector<double> gaps(n);
  for (int64_t s = 0; s < n; ++s) gaps[s] = 1 - largest[std::max(s, n - 1 - s)];
  return gaps;
}

double IndexGapBound(double theta, int64_t n, int64_t s) {
  const auto farthest = static_cast<double>(std::max(s, n - 1 - s));
  return std::min(1 - std::cos(theta),
                  2 * std::numbers::pi * std::numbers::pi / (farthest * farthest));
}

RetrievalGap WorstRetrievalGap(double theta, int64_t letters, int64_t n) {
  // The best competitor at each offset, and the two best offsets: a match leaves one of them.
  struct Competitor {
    double logit = -std::numeric_limits<double>::infinity();
    int64_t offset = 0;
    int64_t difference = 0;
  };
  Competitor best;
  Competitor second;
  for (int64_t c = 0; c < n; ++c) {
    Competitor here{.offset = c};
    for (int64_t d = 1; d < letters; ++d) {
      const double logit =
          std::cos(static_cast<double>(d) * Omega(letters) + static_cast<double>(c) * theta);
      if (logit > here.logit) {
        here.logit = logit;
        here.difference = d;
      }
    }
    if (here.logit > best.logit) {
      second = best;
      best = here;
    } else if (here.logit > second.logit) {
      second = here;
    }
  }
  RetrievalGap worst{.gap = std::numeric_limits<double>::infinity()};
  for (int64_t m = 0; m < n; ++m) {
    const Competitor& competitor = m == best.offset ? second : best;
    const double gap = std::cos(static_cast<double>(m) * theta) - competitor.logit;
    if (gap < worst.gap) worst = {gap, m, competitor.offset, competitor.difference};
  }
  return worst;
}

double RetrievalGapBound(double theta, int64_t letters, int64_t n) {
  return 1 - std::cos(Omega(letters) - static_cast<double>(n - 1) * theta);
}

double RetrievalReach(double theta, int64_t letters) { return 1 + Omega(letters) / (2 * theta); }

}  // namespace hopscope::engine

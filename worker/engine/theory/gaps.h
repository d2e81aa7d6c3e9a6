// How clearly the two constructions of constructions.h see their target: the logit gap, which is
// the target's logit minus the largest other one, by exhaustive search, and upper bounds on it.
//
// Gaps are in units of 1 / beta, the attention's scale. Offsets count slots back from the query, 0
// for the query itself, n - 1 for the first of n tokens (arXiv 2605.31558, Def. 3.1, Th. 3.2). The
// paper's Delta(n) is a maximum over inputs of length n; its bounds hold for the minimum over
// inputs, which is what is computed here, and with the corrections that stand at each function.
// An upper bound limits what a construction can do and promises nothing.
//
// Pure functions; thread-safe. theta and omega are in radians.
#ifndef HOPSCOPE_WORKER_ENGINE_THEORY_GAPS_H_
#define HOPSCOPE_WORKER_ENGINE_THEORY_GAPS_H_

#include <cstdint>
#include <vector>

namespace hopscope::engine {

// T_Index: the gap of a query after n tokens (itself included) for each offset s = 0 .. n-1 that it
// may point at: 1 - max over t != s of cos((t - s) theta), t = 0 .. n-1. n is 2 or more.
std::vector<double> IndexGaps(double theta, int64_t n);

// min(1 - cos theta, 2 pi^2 / max(s, n-1-s)^2): at least the gap of offset s, for every theta and n
// of 2 or more. The paper prints 2 pi^2 / n^2 for every s, which a query that points at the middle
// of a sequence exceeds.
double IndexGapBound(double theta, int64_t n, int64_t s);

// T_Retrieval: the smallest gap over the inputs of n tokens in which one token matches the query,
// and where it is found. Logits are cos(d omega + c theta) for a token at offset c whose letter
// differs by d from the one that the query looks for; omega = 2 pi / letters.
struct RetrievalGap {
  double gap = 0;
  int64_t match_offset = 0;
  int64_t competitor_offset = 0;
  int64_t letter_difference = 0;  // 1 .. letters-1
};
// n and letters are 2 or more.
RetrievalGap WorstRetrievalGap(double theta, int64_t letters, int64_t n);

// 1 - cos(omega - (n-1) theta): at least the worst gap. The paper prints it with n in the place of
// n - 1.
double RetrievalGapBound(double theta, int64_t letters, int64_t n);

// 1 + omega / (2 theta): the worst gap is positive for every n below it (infinity for theta = 0).
// `theta` is 0 or more.
double RetrievalReach(double theta, int64_t letters);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_THEORY_GAPS_H_

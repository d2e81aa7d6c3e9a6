// What an attention head is called, given its positional and symbolic scores.
//
// At gamma (the first two lines of arXiv 2605.31558, Fig. 7, whose thresholds are read off its
// curves; the others are this project's):
//   positional    s_pos >= 1 - gamma and s_sym <= gamma
//   symbolic      s_sym >= 1 - gamma and s_pos <= gamma
//   diffuse       both > 1 - gamma: near-uniform attention scores high on both
//   mixed         otherwise
//   unidentified  what the swaps exchange is too little, or too even, to tell: the mean swapped
//   mass
//                 is below 0.01, or the mean contrast below 0.1. Looked at where these are known.
//
// Pure functions; thread-safe.
#ifndef HOPSCOPE_COMMON_HEAD_LABEL_H_
#define HOPSCOPE_COMMON_HEAD_LABEL_H_

#include <optional>

#include "absl/strings/string_view.h"

namespace hopscope::common {

enum class HeadLabel { kPositional, kSymbolic, kDiffuse, kMixed, kUnidentified };

inline constexpr double kDefaultGamma = 0.1;
inline constexpr double kMinSwappedMass = 0.01;
inline constexpr double kMinContrast = 0.1;

// A flag of scores (HeadScores.flags) that have no label: every head of a model that adds positions
// to its embedding is symbolic by construction.
inline constexpr absl::string_view kPositionInContent = "position_in_content";

// Means over a set of sequences.
struct LabelledScores {
  double positional = 0;
  double symbolic = 0;
  std::optional<double> swapped_mass;
  std::optional<double> contrast;
};

HeadLabel LabelOf(const LabelledScores& scores, double gamma);

// "positional", "unidentified".
absl::string_view LabelName(HeadLabel label);

// Three letters: "pos", "sym", "dif", "mix", "???".
absl::string_view ShortLabelName(HeadLabel label);

}  // namespace hopscope::common

#endif  // HOPSCOPE_COMMON_HEAD_LABEL_H_

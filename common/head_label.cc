#include "common/head_label.h"

namespace hopscope::common {

HeadLabel LabelOf(const LabelledScores& scores, double gamma) {
  if (scores.swapped_mass.value_or(kMinSwappedMass) < kMinSwappedMass ||
      scores.contrast.value_or(kMinContrast) < kMinContrast) {
    return HeadLabel::kUnidentified;
  }
  const double high = 1 - gamma;
  if (scores.positional >= high && scores.symbolic <= gamma) return HeadLabel::kPositional;
  if (scores.symbolic >= high && scores.positional <= gamma) return HeadLabel::kSymbolic;
  if (scores.positional > high && scores.symbolic > high) return HeadLabel::kDiffuse;
  return HeadLabel::kMixed;
}

absl::string_view LabelName(HeadLabel label) {
  switch (label) {
    case HeadLabel::kPositional:
      return "positional";
    case HeadLabel::kSymbolic:
      return "symbolic";
    case HeadLabel::kDiffuse:
      return "diffuse";
    case HeadLabel::kUnidentified:
      return "unidentified";
    case HeadLabel::kMixed:
      break;
  }
  return "mixed";
}

absl::string_view ShortLabelName(HeadLabel label) {
  switch (label) {
    case HeadLabel::kPositional:
      return "pos";
    case HeadLabel::kSymbolic:
      return "sym";
    case HeadLabel::kDiffuse:
      return "dif";
    case HeadLabel::kUnidentified:
      return "???";
    case HeadLabel::kMixed:
      break;
  }
  return "mix";
}

}  // namespace hopscope::common

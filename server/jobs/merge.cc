#include "server/jobs/merge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "google/protobuf/util/message_differencer.h"

namespace hopscope::jobs {
namespace {

// Failed items that a merge keeps as examples.
constexpr int kKeptItemFailures = 4;

// The 97.5 % point of the standard normal distribution.
constexpr double kNormalQuantile = 1.959963984540054;

bool SameMetric(const v1::ScoreMoments& a, const v1::ScoreMoments& b) {
  return a.scorer() == b.scorer() && a.metric() == b.metric() && a.steps() == b.steps() &&
         a.layers() == b.layers() && a.heads() == b.heads() && a.planes() == b.planes() &&
         a.mean_size() == b.mean_size() && a.min_size() == b.min_size() &&
         std::equal(a.flags().begin(), a.flags().end(), b.flags().begin(), b.flags().end()) &&
         google::protobuf::util::MessageDifferencer::Equals(a.params(), b.params());
}

std::string Describe(const v1::ScoreMoments& score) {
  return absl::StrCat(score.scorer(), ".", score.metric(), " [", score.steps(), ", ",
                      score.layers(), ", ", score.heads(), ", ", score.planes(), "]");
}

void MergeScore(const v1::ScoreMoments& next, v1::ScoreMoments& merge) {
  for (int i = 0; i < merge.mean_size(); ++i) {
    const int64_t count_a = merge.count(i);
    const int64_t count_b = next.count(i);
    if (count_b == 0) continue;
    const bool has_extremes = i < merge.min_size();
    if (count_a == 0) {
      merge.set_count(i, count_b);
      merge.set_mean(i, next.mean(i));
      merge.set_m2(i, next.m2(i));
      if (has_extremes) {
        merge.set_min(i, next.min(i));
        merge.set_max(i, next.max(i));
      }
      continue;
    }
    if (has_extremes) {
      merge.set_min(i, std::min(merge.min(i), next.min(i)));
      merge.set_max(i, std::max(merge.max(i), next.max(i)));
    }
    const auto a = static_cast<double>(count_a);
    const auto b = static_cast<double>(count_b);
    const double n = a + b;
    const double delta = next.mean(i) - merge.mean(i);
    merge.set_count(i, count_a + count_b);
    merge.set_mean(i, merge.mean(i) + delta * b / n);
    merge.set_m2(i, merge.m2(i) + next.m2(i) + delta * delta * a * b / n);
  }
}

}  // namespace

absl::Status CheckMergeable(const v1::UnitResult& a, const v1::UnitResult& b) {
  if (a.items() == 0 || b.items() == 0) return absl::OkStatus();
  if (a.scores_size() != b.scores_size()) {
    return common::MakeError(absl::StatusCode::kInternal, "INTERNAL",
                             absl::StrCat("units of one cell have ", a.scores_size(), " and ",
                                          b.scores_size(), " metrics"));
  }
  for (int i = 0; i < a.scores_size(); ++i) {
    if (!SameMetric(a.scores(i), b.scores(i))) {
      return common::MakeError(
          absl::StatusCode::kInternal, "INTERNAL",
          absl::StrCat("units of one cell differ in metric ", i, ": ", Describe(a.scores(i)),
                       " and ", Describe(b.scores(i)), ", or its parameters"));
    }
  }
  return absl::OkStatus();
}

absl::Status MergeUnit(const v1::UnitResult& next, v1::UnitResult& merge) {
  HOPSCOPE_RETURN_IF_ERROR(CheckMergeable(merge, next));
  if (next.items() > 0) {
    if (merge.items() == 0) {
      *merge.mutable_scores() = next.scores();
    } else {
      for (int i = 0; i < merge.scores_size(); ++i) {
        MergeScore(next.scores(i), *merge.mutable_scores(i));
      }
    }
  }
  merge.set_items(merge.items() + next.items());
  merge.set_items_failed(merge.items_failed() + next.items_failed());
  merge.set_correct(merge.correct() + next.correct());
  merge.set_items_unlabelled(merge.items_unlabelled() + next.items_unlabelled());
  for (const v1::ItemFailure& failure : next.item_failures()) {
    if (merge.item_failures_size() >= kKeptItemFailures) break;
    *merge.add_item_failures() = failure;
  }
  return absl::OkStatus();
}

void SummariseAnswers(int64_t items, int64_t items_failed, int64_t correct,
                      int64_t items_unlabelled, v1::CellResult& result) {
  result.set_items(items);
  result.set_items_failed(items_failed);
  result.set_correct(correct);
  result.set_items_unlabelled(items_unlabelled);
  const int64_t labelled = items - items_unlabelled;
  if (labelled == 0) return;
  const auto n = static_cast<double>(labelled);
  const double p = static_cast<double>(correct) / n;
  result.set_accuracy(p);
  // s^2 = n / (n - 1) * p * (1 - p), and the standard error is s / sqrt(n).
  if (labelled >= 2) result.set_standard_error(std::sqrt(p * (1 - p) / (n - 1)));
  const double z2 = kNormalQuantile * kNormalQuantile;
  const double centre = (p + z2 / (2 * n)) / (1 + z2 / n);
  const double half =
      kNormalQuantile / (1 + z2 / n) * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n));
  // Exactly 0 and 1 at the ends, where the formula leaves rounding behind.
  result.set_ci_low(correct == 0 ? 0 : std::max(0.0, centre - half));
  result.set_ci_high(correct == labelled ? 1 : std::min(1.0, centre + half));
}

std::vector<v1::HeadScores> SummariseHeads(const v1::UnitResult& merge, const v1::Cell& cell) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  std::vector<v1::HeadScores> heads;
  heads.reserve(merge.scores_size());
  for (const v1::ScoreMoments& score : merge.scores()) {
    v1::HeadScores& out = heads.emplace_back();
    *out.mutable_cell() = cell;
    out.set_scorer(score.scorer());
    *out.mutable_params() = score.params();
    out.set_metric(score.metric());
    out.set_steps(score.steps());
    out.set_layers(score.layers());
    out.set_heads(score.heads());
    out.set_planes(score.planes());
    *out.mutable_flags() = score.flags();
    for (int i = 0; i < score.mean_size(); ++i) {
      const int64_t count = score.count(i);
      const auto n = static_cast<double>(count);
      out.add_items(count);
      out.add_mean(count == 0 ? kNaN : score.mean(i));
      out.add_standard_error(count < 2 ? kNaN : std::sqrt(score.m2(i) / (n - 1) / n));
      if (score.min_size() == 0) continue;
      out.add_min(count == 0 ? kNaN : score.min(i));
      out.add_max(count == 0 ? kNaN : score.max(i));
    }
  }
  return heads;
}

}  // namespace hopscope::jobs

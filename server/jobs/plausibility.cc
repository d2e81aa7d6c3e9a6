#include "server/jobs/plausibility.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/spec/catalog.h"
#include "common/spec/scorer_params.h"
#include "common/spec/text.h"
#include "common/status.h"
#include "google/protobuf/util/message_differencer.h"
#include "server/jobs/failures.h"
#include "server/jobs/score_cost.h"

namespace hopscope::jobs {
namespace {

using google::protobuf::util::MessageDifferencer;

constexpr size_t kMaxKindBytes = 256;
// Far above any axis of hop steps or rotary planes.
constexpr int64_t kMaxAxis = 1 << 16;
constexpr int kMaxFlags = 8;
constexpr size_t kMaxFlagBytes = 64;

template <typename... Parts>
absl::Status Implausible(const Parts&... parts) {
  return common::MakeError(absl::StatusCode::kInternal, kInternal,
                           absl::StrCat("the worker's result cannot be right: ", parts...));
}

absl::Status CheckCounts(const v1::UnitResult& result, int64_t item_count,
                         const v1::TaskSpec& task) {
  if (result.items() < 0 || result.items_failed() < 0 ||
      result.items() > item_count - result.items_failed() ||
      result.items() + result.items_failed() != item_count) {
    return Implausible(result.items(), " items and ", result.items_failed(), " failed ones of ",
                       item_count);
  }
  const bool may_lack_labels = task.task() == spec::kTokensTask;
  if (result.items_unlabelled() < 0 ||
      result.items_unlabelled() > (may_lack_labels ? result.items() : 0)) {
    return Implausible(result.items_unlabelled(), " items without a label of ", result.items());
  }
  if (result.correct() < 0 || result.correct() > result.items() - result.items_unlabelled()) {
    return Implausible(result.correct(), " correct answers of ",
                       result.items() - result.items_unlabelled(), " items");
  }
  return absl::OkStatus();
}

absl::Status CheckScore(const v1::ScoreMoments& score, int64_t items, bool each_head,
                        const v1::TaskSpec& task, const store::CheckpointRow& checkpoint) {
  const std::string name = absl::StrCat(score.scorer(), ".", score.metric());
  const int32_t layers = each_head ? checkpoint.layers : 0;
  const int32_t heads = each_head ? checkpoint.heads : 0;
  if (score.layers() != layers || score.heads() != heads) {
    return Implausible(name, " has ", score.layers(), " layers of ", score.heads(),
                       " heads instead of ", layers, " of ", heads);
  }
  if (score.scorer() == spec::kAccuracyByPosition && score.steps() != task.window().target()) {
    return Implausible(name, " has ", score.steps(), " slots, the window ", task.window().target());
  }
  if (score.steps() < 0 || score.steps() > kMaxAxis || score.planes() < 0 ||
      score.planes() > kMaxAxis) {
    return Implausible(name, " has ", score.steps(), " steps and ", score.planes(), " planes");
  }
  if (score.flags_size() > kMaxFlags) {
    return Implausible(name, " has ", score.flags_size(), " flags");
  }
  for (const std::string& flag : score.flags()) {
    if (flag.empty() || flag.size() > kMaxFlagBytes || !spec::IsPrintableUtf8(flag)) {
      return Implausible(name, " has the flag ", spec::Quoted(flag));
    }
  }
  const int64_t size = std::max<int64_t>(score.steps(), 1) * std::max(layers, 1) *
                       std::max(heads, 1) * std::max<int64_t>(score.planes(), 1);
  if (score.count_size() != size || score.mean_size() != size || score.m2_size() != size) {
    return Implausible(name, " has ", score.count_size(), " counts, ", score.mean_size(),
                       " means and ", score.m2_size(), " sums of squares, its shape ", size);
  }
  const bool has_extremes = score.min_size() > 0;
  if (score.min_size() != score.max_size() || (has_extremes && score.min_size() != size)) {
    return Implausible(name, " has ", score.min_size(), " smallest and ", score.max_size(),
                       " largest values, its shape ", size);
  }
  for (int i = 0; i < score.count_size(); ++i) {
    const int64_t count = score.count(i);
    if (count < 0 || count > items) {
      return Implausible(name, " counts ", count, " of ", items, " items");
    }
    if (count > 0 &&
        (!std::isfinite(score.mean(i)) || !std::isfinite(score.m2(i)) || score.m2(i) < 0)) {
      return Implausible(name, " has mean ", score.mean(i), " and sum of squares ", score.m2(i));
    }
    // The mean may lie outside by its rounding, so only the order of the two is looked at.
    if (has_extremes && count > 0 &&
        !(std::isfinite(score.min(i)) && score.min(i) <= score.max(i) &&
          std::isfinite(score.max(i)))) {
      return Implausible(name, " has values from ", score.min(i), " to ", score.max(i));
    }
  }
  return absl::OkStatus();
}

struct ExpectedScore {
  std::string scorer;
  std::string metric;
  google::protobuf::Struct params;
  bool each_head = false;
};

// Every score that the task's units have. Answers are counted beside them.
std::vector<ExpectedScore> ExpectedScores(const v1::TaskSpec& task) {
  std::vector<ExpectedScore> expected;
  for (const v1::ScorerSpec& scorer : task.scorers()) {
    if (ScorerMetrics(scorer) == 0) continue;
    for (const google::protobuf::Struct& params : spec::ResultParams(scorer)) {
      for (const std::string& metric : spec::ResultMetrics(scorer)) {
        expected.push_back({scorer.name(), metric, params, spec::ScoresEachHead(scorer)});
      }
    }
  }
  return expected;
}

}  // namespace

absl::Status CheckUnitResult(const v1::UnitResult& result, int64_t item_count,
                             const v1::TaskSpec& task, const store::CheckpointRow& checkpoint) {
  if (result.kind().empty() || result.kind().size() > kMaxKindBytes ||
      !spec::IsPrintableUtf8(result.kind())) {
    return Implausible("its kind is ", spec::Quoted(result.kind()));
  }
  HOPSCOPE_RETURN_IF_ERROR(CheckCounts(result, item_count, task));
  if (result.items() == 0) {
    // Without items there is nothing to average, and a merge takes nothing from here.
    return absl::OkStatus();
  }
  std::vector<ExpectedScore> missing = ExpectedScores(task);
  for (const v1::ScoreMoments& score : result.scores()) {
    const auto found =
        std::find_if(missing.begin(), missing.end(), [&score](const ExpectedScore& expected) {
          return expected.scorer == score.scorer() && expected.metric == score.metric() &&
                 MessageDifferencer::Equals(expected.params, score.params());
        });
    if (found == missing.end()) {
      return Implausible("nobody asked for ", spec::Quoted(score.scorer()), ".",
                         spec::Quoted(score.metric()), " with ",
                         spec::Quoted(score.params().ShortDebugString()), ", or it is there twice");
    }
    const bool each_head = found->each_head;
    missing.erase(found);
    HOPSCOPE_RETURN_IF_ERROR(CheckScore(score, result.items(), each_head, task, checkpoint));
  }
  if (!missing.empty()) {
    return Implausible(missing[0].scorer, ".", missing[0].metric, " is missing");
  }
  return absl::OkStatus();
}

}  // namespace hopscope::jobs

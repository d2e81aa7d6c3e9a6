#include "worker/engine/scorers/ablation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/spec/head_set.h"
#include "common/spec/scorer_params.h"
#include "common/status.h"
#include "worker/engine/model/forward_pass.h"
#include "worker/engine/scorers/answer.h"

namespace hopscope::engine {
namespace {

// In the order of the catalog.
enum Metric : size_t { kAccuracy, kLoss, kAccuracyDrop, kLossRise, kMetrics };
constexpr const char* kMetricNames[kMetrics] = {"accuracy", "loss", "accuracy_drop", "loss_rise"};

ReplacementKind KindOf(absl::string_view name) {
  if (name == "mean") return ReplacementKind::kMean;
  if (name == "positional_only") return ReplacementKind::kPositionalOnly;
  if (name == "symbolic_only") return ReplacementKind::kSymbolicOnly;
  return ReplacementKind::kZero;
}

class AblationBatch : public BatchScorer {
 public:
  AblationBatch(const ScoringBatch& batch, const std::vector<Ablation::Variation>& variations,
                size_t sets, std::vector<MetricTable>* tables, ItemFailures* failures)
      : batch_(batch),
        variations_(variations),
        sets_(sets),
        tables_(*tables),
        failures_(*failures) {}

  Interest interest() const override { return {.residual = true}; }

  void OnResidual(int64_t layer, const MatrixView& rows) override {
    for (const Ablation::Variation& variation : variations_) {
      if (variation.first_layer != layer || !error_.ok()) continue;
      const absl::StatusOr<MatrixView> logits = pass_.Run(
          *batch_.model, {.sequences = static_cast<int64_t>(batch_.sequences.size()),
                          .tokens = static_cast<int64_t>(batch_.sequences[0].tokens.size()),
                          .residual = &rows,
                          .first_layer = layer,
                          .replacements = &variation.replacements,
                          .cancel = batch_.cancel});
      if (!logits.ok()) {
        error_ = logits.status();
        return;
      }
      for (int64_t row = 0; row < logits->rows; ++row) {
        const Answer answer = AnswerOf(*logits, row, batch_.sequences[row].label);
        if (!answer.finite) {
          failures_.Fail(batch_.items[row], absl::StrCat("a logit after the last token with ",
                                                         variation.name, " is NaN or infinite"));
        } else if (batch_.sequences[row].label >= 0) {
          Value(kAccuracy, variation, row) = answer.correct ? 1 : 0;
          Value(kLoss, variation, row) = answer.loss;
        }
      }
    }
  }

  void OnLogits(const MatrixView& logits) override {
    for (int64_t row = 0; row < logits.rows; ++row) {
      const Answer whole = AnswerOf(logits, row, batch_.sequences[row].label);
      if (!whole.finite) {
        failures_.Fail(batch_.items[row], "a logit after the last token is NaN or infinite");
        continue;
      }
      if (batch_.sequences[row].label < 0) continue;
      for (const Ablation::Variation& variation : variations_) {
        Value(kAccuracyDrop, variation, row) =
            (whole.correct ? 1 : 0) - Value(kAccuracy, variation, row);
        Value(kLossRise, variation, row) = Value(kLoss, variation, row) - whole.loss;
      }
    }
  }

  absl::Status error() const override { return error_; }

 private:
  double& Value(Metric metric, const Ablation::Variation& variation, int64_t row) {
    return tables_[metric * sets_ + variation.set].item(batch_.items[row])[variation.cell];
  }

  const ScoringBatch batch_;
  const std::vector<Ablation::Variation>& variations_;
  const size_t sets_;
  std::vector<MetricTable>& tables_;
  ItemFailures& failures_;
  ForwardPass pass_;  // beside the batch's own, whose buffers are in use
  absl::Status error_;
};

}  // namespace

std::unique_ptr<Ablation> Ablation::Create(const v1::ScorerSpec& spec,
                                           const checkpoint::Architecture& architecture,
                                           int64_t items, ItemFailures* failures) {
  const std::vector<google::protobuf::Struct> sets = spec::ResultParams(spec);
  const bool each = spec::ScoresEachHead(spec);
  std::vector<Variation> variations;
  for (size_t set = 0; set < sets.size(); ++set) {
    const std::string& kind_name = sets[set].fields().at("kinds").string_value();
    const std::string& heads_name = sets[set].fields().at("heads").string_value();
    const ReplacementKind kind = KindOf(kind_name);
    const auto parts = spec::ParseHeadSet(each ? "*.*" : heads_name);
    const auto heads =
        spec::ExpandHeadSet(parts.value(), architecture.layers, architecture.heads).value();
    const auto add = [&](const std::vector<std::pair<int64_t, int64_t>>& replaced, int64_t cell,
                         const std::string& name) {
      Variation variation{.first_layer = replaced.front().first,
                          .set = set,
                          .cell = cell,
                          .name = absl::StrCat(kind_name, " of heads ", name)};
      for (const auto& [layer, head] : replaced) {
        variation.replacements.heads.push_back({.layer = layer, .head = head, .kind = kind});
      }
      variations.push_back(std::move(variation));
    };
    if (!each) {
      add(heads, 0, heads_name);
      continue;
    }
    for (size_t i = 0; i < heads.size(); ++i) {
      add({heads[i]}, static_cast<int64_t>(i), absl::StrCat(heads[i].first, ".", heads[i].second));
    }
  }
  std::unique_ptr<Ablation> scorer(new Ablation(sets.size(), std::move(variations), failures));
  MetricTable::Axes axes;
  if (each) {
    axes.layers = static_cast<int32_t>(architecture.layers);
    axes.heads = static_cast<int32_t>(architecture.heads);
  }
  for (const char* metric : kMetricNames) {
    for (const google::protobuf::Struct& params : sets) {
      scorer->tables_.emplace_back(metric, params, axes, items);
    }
  }
  return scorer;
}

Ablation::Ablation(size_t sets, std::vector<Variation> variations, ItemFailures* failures)
    : Scorer("ablation"),
      sets_(sets),
      variations_(std::move(variations)),
      failures_(failures),
      needs_means_(std::any_of(variations_.begin(), variations_.end(), [](const Variation& one) {
        return one.replacements.heads[0].kind == ReplacementKind::kMean;
      })) {}

void Ablation::SetHeadMeans(std::shared_ptr<const HeadMeans> means) {
  means_ = std::move(means);
  for (Variation& variation : variations_) variation.replacements.means = means_.get();
}

std::unique_ptr<BatchScorer> Ablation::StartBatch(const ScoringBatch& batch) {
  return std::make_unique<AblationBatch>(batch, variations_, sets_, &tables_, failures_);
}

}  // namespace hopscope::engine

#include "worker/engine/scorers/logit_gap.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "worker/engine/scorers/moved_logits.h"

namespace hopscope::engine {
namespace {

enum Metric { kGap, kSelfLogit, kTargetGap };

template <typename T>
class LogitGapBatch : public BatchScorer {
 public:
  LogitGapBatch(const ScoringBatch& batch, std::vector<MetricTable>* tables, ItemFailures* failures)
      : batch_(batch),
        tables_(*tables),
        failures_(*failures),
        rotary_(batch.model->rotary_tables<T>().AtLeast(
            static_cast<int64_t>(batch.sequences[0].tokens.size()))),
        logits_(&batch.model->architecture(), rotary_.get()) {}

  Interest interest() const override { return {.projections = true}; }

  void OnProjections(const LayerProjections& projections) override {
    const checkpoint::Architecture& a = batch_.model->architecture();
    const int64_t group = a.heads / a.kv_heads;
    const int64_t query_slot = projections.tokens - 1;
    const int64_t window = a.attention_window[projections.layer];
    const int64_t first_slot = window > 0 ? std::max<int64_t>(0, query_slot - window + 1) : 0;
    for (int64_t sequence = 0; sequence < projections.sequences; ++sequence) {
      const int64_t row = sequence * projections.tokens;
      const Sequence& known = batch_.sequences[sequence];
      // Sequences of a task have a path to their target.
      const bool has_target = !known.path.empty() && known.target >= first_slot;
      for (int64_t head = 0; head < a.heads; ++head) {
        logits_.Start(projections.layer, head, first_slot, query_slot,
                      projections.queries.Row<T>(row + query_slot) + head * a.d_head,
                      projections.keys.Row<T>(row + first_slot) + head / group * a.d_head,
                      projections.keys.stride);
        const std::vector<double>& own = logits_.own();
        const auto set = [&](Metric metric, double value) {
          const int64_t item = batch_.items[sequence];
          tables_[metric].item(item)[projections.layer * a.heads + head] = value;
          if (!std::isfinite(value)) {
            failures_.Fail(item,
                           absl::StrCat(tables_[metric].metric(), " of layer ", projections.layer,
                                        " head ", head, " is NaN or infinite"));
          }
        };
        set(kSelfLogit, own.back());
        if (own.size() < 2) continue;
        set(kGap, LargestGap(own));
        if (has_target) set(kTargetGap, GapOf(own, known.target - first_slot));
      }
    }
  }

 private:
  const ScoringBatch batch_;
  std::vector<MetricTable>& tables_;
  ItemFailures& failures_;
  const std::shared_ptr<const RotaryTable<T>> rotary_;
  HeadLogits<T> logits_;
};

}  // namespace

double LargestGap(const std::vector<double>& logits) {
  double largest = -std::numeric_limits<double>::infinity();
  double second = largest;
  for (const double logit : logits) {
    if (!std::isfinite(logit)) return std::nan("");
    second = std::max(second, std::min(largest, logit));
    largest = std::max(largest, logit);
  }
  return largest - second;
}

double GapOf(const std::vector<double>& logits, int64_t slot) {
  double largest = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!std::isfinite(logits[i])) return std::nan("");
    if (static_cast<int64_t>(i) != slot) largest = std::max(largest, logits[i]);
  }
  return logits[slot] - largest;
}

LogitGap::LogitGap(const checkpoint::Architecture& architecture, int64_t items,
                   ItemFailures* failures)
    : Scorer("logit_gap"), failures_(failures) {
  for (const char* metric : {"gap", "self_logit", "target_gap"}) {
    tables_.emplace_back(metric, google::protobuf::Struct(),
                         MetricTable::Axes{.layers = static_cast<int32_t>(architecture.layers),
                                           .heads = static_cast<int32_t>(architecture.heads)},
                         items, /*extremes=*/true);
  }
}

std::unique_ptr<BatchScorer> LogitGap::StartBatch(const ScoringBatch& batch) {
  if (batch.model->float64()) {
    return std::make_unique<LogitGapBatch<double>>(batch, &tables_, failures_);
  }
  return std::make_unique<LogitGapBatch<float>>(batch, &tables_, failures_);
}

}  // namespace hopscope::engine

#include "worker/engine/scorers/positional_symbolic.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/spec/scorer_params.h"
#include "worker/engine/scorers/moved_logits.h"
#include "worker/engine/scorers/swap_scores.h"

namespace hopscope::engine {
namespace {

template <typename T>
class PositionalSymbolicBatch : public BatchScorer {
 public:
  PositionalSymbolicBatch(const ScoringBatch& batch, const std::vector<double>& taus,
                          std::vector<MetricTable>* tables, ItemFailures* failures)
      : batch_(batch),
        taus_(taus),
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
      for (int64_t head = 0; head < a.heads; ++head) {
        logits_.Start(projections.layer, head, first_slot, query_slot,
                      projections.queries.Row<T>(row + query_slot) + head * a.d_head,
                      projections.keys.Row<T>(row + first_slot) + head / group * a.d_head,
                      projections.keys.stride);
        const std::vector<double>& own = logits_.own();
        if (!ComputeSwapScores<T>(own.data(), query_slot - first_slot, own.back(), taus_, &logits_,
                                  batch_.cancel, &scratch_, &scores_)) {
          return;
        }
        Keep(batch_.items[sequence], projections.layer, head, projections.layer * a.heads + head);
      }
    }
  }

 private:
  void Keep(int64_t item, int64_t layer, int64_t head, int64_t cell) {
    const size_t taus = taus_.size();
    const auto set = [&](size_t table, double value) {
      tables_[table].item(item)[cell] = value;
      if (!std::isfinite(value)) {
        failures_.Fail(item, absl::StrCat(tables_[table].metric(), " of layer ", layer, " head ",
                                          head, " is NaN or infinite"));
      }
    };
    for (size_t t = 0; t < taus; ++t) {
      if (scores_.has_swaps) {
        set(t, scores_.positional[t]);
        set(taus + t, scores_.symbolic[t]);
      }
      set(2 * taus + t, scores_.self_mass);
    }
  }

  const ScoringBatch batch_;
  const std::vector<double>& taus_;
  std::vector<MetricTable>& tables_;
  ItemFailures& failures_;
  const std::shared_ptr<const RotaryTable<T>> rotary_;
  HeadLogits<T> logits_;
  SwapScratch<T> scratch_;
  HeadScores scores_;
};

}  // namespace

PositionalSymbolic::PositionalSymbolic(const v1::ScorerSpec& spec,
                                       const checkpoint::Architecture& architecture, int64_t items,
                                       ItemFailures* failures)
    : Scorer("positional_symbolic"), failures_(failures) {
  for (const auto& tau : spec.params().fields().at("taus").list_value().values()) {
    taus_.push_back(tau.number_value());
  }
  const MetricTable::Axes axes{.layers = static_cast<int32_t>(architecture.layers),
                               .heads = static_cast<int32_t>(architecture.heads)};
  for (const char* metric : {"positional", "symbolic", "self_mass"}) {
    for (const google::protobuf::Struct& params : spec::ResultParams(spec)) {
      tables_.emplace_back(metric, params, axes, items);
    }
  }
}

std::unique_ptr<BatchScorer> PositionalSymbolic::StartBatch(const ScoringBatch& batch) {
  if (batch.model->float64()) {
    return std::make_unique<PositionalSymbolicBatch<double>>(batch, taus_, &tables_, failures_);
  }
  return std::make_unique<PositionalSymbolicBatch<float>>(batch, taus_, &tables_, failures_);
}

}  // namespace hopscope::engine

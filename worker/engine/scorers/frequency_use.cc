#include "worker/engine/scorers/frequency_use.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "worker/engine/scorers/plane_logits.h"
#include "worker/engine/scorers/swap_scores.h"

namespace hopscope::engine {
namespace {

enum Metric { kMaxLogit, kQueryNorm, kKeyNorm, kShare, kPlanePositional, kPlaneSymbolic };
constexpr const char* kMetrics[] = {"max_logit", "query_norm",       "key_norm",
                                    "share",     "plane_positional", "plane_symbolic"};

// Mean over rows of the length of two columns.
template <typename T>
double MeanNorm(const MatrixView& rows, int64_t first, int64_t count, int64_t x, int64_t y) {
  double sum = 0;
  for (int64_t row = first; row < first + count; ++row) {
    const T* const values = rows.Row<T>(row);
    const auto first_column = static_cast<double>(values[x]);
    const auto second_column = static_cast<double>(values[y]);
    sum += std::sqrt(first_column * first_column + second_column * second_column);
  }
  return sum / static_cast<double>(count);
}

template <typename T>
class FrequencyUseBatch : public BatchScorer {
 public:
  FrequencyUseBatch(const ScoringBatch& batch, const std::vector<double>& taus,
                    const ChosenTables& chosen)
      : batch_(batch),
        taus_(taus),
        chosen_(chosen),
        rotary_(batch.model->rotary_tables<T>().AtLeast(
            static_cast<int64_t>(batch.sequences[0].tokens.size()))),
        planes_(&batch.model->architecture()) {}

  Interest interest() const override { return {.projections = true}; }

  void OnProjections(const LayerProjections& projections) override {
    const checkpoint::Architecture& a = batch_.model->architecture();
    const int64_t group = a.heads / a.kv_heads;
    const int64_t query_slot = projections.tokens - 1;
    const int64_t window = a.attention_window[projections.layer];
    const int64_t first_slot = window > 0 ? std::max<int64_t>(0, query_slot - window + 1) : 0;
    const bool needs_logits = chosen_.has(kMaxLogit) || chosen_.has(kShare) || NeedsSwaps();
    for (int64_t sequence = 0; sequence < projections.sequences; ++sequence) {
      const int64_t row = sequence * projections.tokens;
      for (int64_t head = 0; head < a.heads; ++head) {
        if (batch_.cancel != nullptr && batch_.cancel->cancelled()) return;
        place_ = {batch_.items[sequence], projections.layer, head};
        const int64_t query_column = head * a.d_head;
        const int64_t key_column = head / group * a.d_head;
        for (int64_t t = 0; t < planes_.planes(); ++t) {
          const auto [x, y] = PlaneColumns(a, t);
          if (chosen_.has(kQueryNorm)) {
            Set(kQueryNorm, t,
                MeanNorm<T>(projections.queries, row, projections.tokens, query_column + x,
                            query_column + y));
          }
          if (chosen_.has(kKeyNorm)) {
            Set(kKeyNorm, t,
                MeanNorm<T>(projections.keys, row, projections.tokens, key_column + x,
                            key_column + y));
          }
        }
        if (!needs_logits) continue;
        planes_.Start(*rotary_, query_slot - first_slot + 1,
                      projections.queries.Row<T>(row + query_slot) + query_column,
                      projections.keys.Row<T>(row + first_slot) + key_column,
                      projections.keys.stride);
        SetMaxLogits();
        SetShares();
        if (NeedsSwaps() && !SetPlaneScores(a.attention_scale[projections.layer])) return;
      }
    }
  }

 private:
  struct Place {
    int64_t item = 0;
    int64_t layer = 0;
    int64_t head = 0;
  };

  bool NeedsSwaps() const { return chosen_.has(kPlanePositional) || chosen_.has(kPlaneSymbolic); }

  void Set(Metric metric, int64_t plane, double value) {
    chosen_.Set(metric, place_.item, place_.layer, place_.head, plane, value);
  }

  // The largest of some numbers; NaN where one is not finite.
  static double Largest(const double* values, int64_t count) {
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < count; ++i) {
      if (!std::isfinite(values[i])) return std::nan("");
      largest = std::max(largest, values[i]);
    }
    return largest;
  }

  void SetMaxLogits() {
    for (int64_t t = 0; t < planes_.planes(); ++t) {
      Set(kMaxLogit, t, Largest(planes_.logits(t), planes_.slots()));
    }
  }

  void SetShares() {
    if (!chosen_.has(kShare)) return;
    const std::vector<double>& total = planes_.total();
    const bool finite = std::isfinite(Largest(total.data(), planes_.slots()));
    const int64_t best = std::max_element(total.begin(), total.end()) - total.begin();
    double sum = 0;
    for (int64_t t = 0; t < planes_.planes(); ++t) sum += std::abs(planes_.logits(t)[best]);
    if (sum == 0) return;
    for (int64_t t = 0; t < planes_.planes(); ++t) {
      Set(kShare, t, finite ? planes_.logits(t)[best] / sum : std::nan(""));
    }
  }

  // False where it was cancelled.
  bool SetPlaneScores(double scale) {
    own_.resize(planes_.slots());
    for (int64_t t = 0; t < planes_.planes(); ++t) {
      for (int64_t slot = 0; slot < planes_.slots(); ++slot) {
        own_[slot] = scale * planes_.logits(t)[slot];
      }
      moved_.Start(planes_.plane(t), scale);
      if (!ComputeSwapScores<double>(own_.data(), planes_.slots() - 1, own_.back(), taus_, &moved_,
                                     batch_.cancel, &scratch_, &scores_)) {
        return false;
      }
      if (!scores_.has_swaps) continue;
      Set(kPlanePositional, t, scores_.means.positional[0]);
      Set(kPlaneSymbolic, t, scores_.means.symbolic[0]);
    }
    return true;
  }

  const ScoringBatch batch_;
  const std::vector<double>& taus_;
  const ChosenTables& chosen_;
  const std::shared_ptr<const RotaryTable<T>> rotary_;
  PlaneLogits planes_;
  MovedPlaneLogits moved_;
  SwapScratch<double> scratch_;
  HeadScores scores_;
  std::vector<double> own_;
  Place place_;
};

}  // namespace

FrequencyUse::FrequencyUse(const v1::ScorerSpec& spec, const checkpoint::Architecture& architecture,
                           int64_t items, ItemFailures* failures)
    : Scorer("frequency_use"),
      taus_({spec.params().fields().at("tau").number_value()}),
      chosen_(spec, kMetrics,
              {.layers = static_cast<int32_t>(architecture.layers),
               .heads = static_cast<int32_t>(architecture.heads),
               .planes = static_cast<int32_t>(RotaryPlanes(architecture))},
              items, &tables_, failures) {}

bool FrequencyUse::NeedsAllQueries() const { return chosen_.has(kQueryNorm); }

std::unique_ptr<BatchScorer> FrequencyUse::StartBatch(const ScoringBatch& batch) {
  if (batch.model->float64()) {
    return std::make_unique<FrequencyUseBatch<double>>(batch, taus_, chosen_);
  }
  return std::make_unique<FrequencyUseBatch<float>>(batch, taus_, chosen_);
}

}  // namespace hopscope::engine

#include "worker/engine/scorers/attention_stats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace hopscope::engine {
namespace {

enum Stat {
  kEntropy,
  kNormEntropy,
  kSinkMass,
  kSelfMass,
  kMeanDistance,
  kMaxWeight,
  kWindowMass,
  kStats
};
// Means over rows, then the last row's in the same order.
constexpr const char* kMetrics[] = {"entropy",         "norm_entropy",    "sink_mass",
                                    "self_mass",       "mean_distance",   "max_weight",
                                    "window_mass",     "entropy_last",    "norm_entropy_last",
                                    "sink_mass_last",  "self_mass_last",  "mean_distance_last",
                                    "max_weight_last", "window_mass_last"};

using Row = std::array<double, kStats>;

bool WantsMeans(const ChosenTables& chosen) {
  for (size_t stat = 0; stat < kStats; ++stat) {
    if (chosen.has(stat)) return true;
  }
  return false;
}

// One row: `weights` [keys], key 0 standing at `first_key`, the query's own key last.
template <typename T>
Row StatsOf(const T* weights, int64_t keys, int64_t first_key, int64_t window, bool entropy) {
  Row row{};
  double distance = 0;
  double largest = 0;
  double minus_entropy = 0;
  for (int64_t c = 0; c < keys; ++c) {
    const double weight = static_cast<double>(weights[c]);
    distance += weight * static_cast<double>(keys - 1 - c);
    largest = std::max(largest, weight);
  }
  if (entropy) {
    for (int64_t c = 0; c < keys; ++c) {
      const double weight = static_cast<double>(weights[c]);
      if (weight > 0) minus_entropy += weight * std::log(weight);
    }
  }
  for (int64_t c = std::max<int64_t>(0, keys - window); c < keys; ++c) {
    row[kWindowMass] += static_cast<double>(weights[c]);
  }
  // A distance of NaN stands for a weight of NaN.
  row[kEntropy] = std::isnan(distance) ? distance : -minus_entropy;
  row[kNormEntropy] = keys < 2 ? 0 : row[kEntropy] / std::log(static_cast<double>(keys));
  row[kSinkMass] = first_key == 0 ? static_cast<double>(weights[0]) : 0;
  row[kSelfMass] = static_cast<double>(weights[keys - 1]);
  row[kMeanDistance] = distance;
  row[kMaxWeight] = std::isnan(distance) ? distance : largest;
  return row;
}

class AttentionStatsBatch : public BatchScorer {
 public:
  AttentionStatsBatch(const ScoringBatch& batch, int64_t window, const ChosenTables& chosen)
      : batch_(batch),
        window_(window),
        chosen_(chosen),
        tokens_(static_cast<int64_t>(batch.sequences[0].tokens.size())),
        means_(WantsMeans(chosen)),
        entropy_(chosen.has(kEntropy) || chosen.has(kNormEntropy) ||
                 chosen.has(kStats + kEntropy) || chosen.has(kStats + kNormEntropy)),
        sums_(batch.sequences.size() * batch.model->architecture().heads) {}

  Interest interest() const override { return {.attention = true}; }

  void OnAttention(const AttentionWeights& attention) override {
    const checkpoint::Architecture& a = batch_.model->architecture();
    const int64_t attention_window = a.attention_window[attention.layer];
    Sums& sums = sums_[attention.sequence * a.heads + attention.head];
    if (attention.first_query == 0) sums = {};
    for (int64_t r = 0; r < attention.weights.rows; ++r) {
      const int64_t query = attention.first_query + r;
      const bool last = query == tokens_ - 1;
      if (!means_ && !last) continue;
      const int64_t first_key =
          attention_window > 0 ? std::max<int64_t>(0, query - attention_window + 1) : 0;
      const int64_t keys = query - first_key + 1;
      const int64_t column = first_key - attention.first_key;
      const Row row = attention.weights.float64 ? StatsOf(attention.weights.Row<double>(r) + column,
                                                          keys, first_key, window_, entropy_)
                                                : StatsOf(attention.weights.Row<float>(r) + column,
                                                          keys, first_key, window_, entropy_);
      for (size_t stat = 0; stat < kStats; ++stat) sums.row[stat] += row[stat];
      if (keys > 1) ++sums.rows_with_choice;
      if (last) Finish(attention, sums, row, keys > 1);
    }
  }

 private:
  struct Sums {
    Row row{};
    int64_t rows_with_choice = 0;
  };

  void Finish(const AttentionWeights& at, const Sums& sums, const Row& last, bool last_has_choice) {
    const int64_t item = batch_.items[at.sequence];
    for (size_t stat = 0; stat < kStats; ++stat) {
      const int64_t rows = stat == kNormEntropy ? sums.rows_with_choice : tokens_;
      if (means_ && rows > 0) {
        chosen_.Set(stat, item, at.layer, at.head, sums.row[stat] / static_cast<double>(rows));
      }
      if (stat != kNormEntropy || last_has_choice) {
        chosen_.Set(kStats + stat, item, at.layer, at.head, last[stat]);
      }
    }
  }

  const ScoringBatch batch_;
  const int64_t window_;
  const ChosenTables& chosen_;
  const int64_t tokens_;
  const bool means_;
  const bool entropy_;
  std::vector<Sums> sums_;  // [sequences, heads], of the layer that runs
};

}  // namespace

AttentionStats::AttentionStats(const v1::ScorerSpec& spec,
                               const checkpoint::Architecture& architecture, int64_t items,
                               ItemFailures* failures)
    : Scorer("attention_stats"),
      window_(static_cast<int64_t>(spec.params().fields().at("window").number_value())),
      chosen_(spec, kMetrics,
              {.layers = static_cast<int32_t>(architecture.layers),
               .heads = static_cast<int32_t>(architecture.heads)},
              items, &tables_, failures) {}

bool AttentionStats::NeedsAllQueries() const { return WantsMeans(chosen_); }

std::unique_ptr<BatchScorer> AttentionStats::StartBatch(const ScoringBatch& batch) {
  return std::make_unique<AttentionStatsBatch>(batch, window_, chosen_);
}

}  // namespace hopscope::engine

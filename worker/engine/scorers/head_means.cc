#include "worker/engine/scorers/head_means.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace hopscope::engine {
namespace {

class HeadMeansBatch : public BatchScorer {
 public:
  HeadMeansBatch(const ScoringBatch& batch, int64_t layers, HeadMeansCollector* collector)
      : first_item_(batch.items.front()),
        sequences_(static_cast<int64_t>(batch.sequences.size())),
        tokens_(static_cast<int64_t>(batch.sequences[0].tokens.size())),
        layers_(layers),
        collector_(*collector) {}

  Interest interest() const override { return {.attended = true}; }

  void OnAttended(int64_t layer, int64_t first_query, const MatrixView& rows) override {
    columns_ = rows.columns;
    const int64_t sequence_size = layers_ * tokens_ * columns_;
    values_.resize(sequences_ * sequence_size);
    for (int64_t sequence = 0; sequence < sequences_; ++sequence) {
      for (int64_t token = first_query; token < tokens_; ++token) {
        const int64_t row = sequence * tokens_ + token;
        double* const to =
            values_.data() + sequence * sequence_size + (layer * tokens_ + token) * columns_;
        if (rows.float64) {
          std::copy_n(rows.Row<double>(row), columns_, to);
        } else {
          std::copy_n(rows.Row<float>(row), columns_, to);
        }
      }
    }
  }

  void OnLogits(const MatrixView& /*logits*/) override {
    const int64_t size = layers_ * tokens_ * columns_;
    HeadMeansCollector::Part part{.items = sequences_, .sums = std::vector<double>(size, 0)};
    for (int64_t sequence = 0; sequence < sequences_; ++sequence) {
      const double* const values = values_.data() + sequence * size;
      if (!std::all_of(values, values + size, [](double x) { return std::isfinite(x); })) continue;
      for (int64_t i = 0; i < size; ++i) part.sums[i] += values[i];
      ++part.finite;
    }
    collector_.Add(first_item_, std::move(part));
  }

 private:
  const int64_t first_item_;
  const int64_t sequences_;
  const int64_t tokens_;
  const int64_t layers_;
  HeadMeansCollector& collector_;
  int64_t columns_ = 0;
  std::vector<double> values_;  // [sequences, layers, tokens, columns]
};

}  // namespace

HeadMeansCollector::HeadMeansCollector(const checkpoint::Architecture& architecture, int64_t tokens)
    : Scorer("head_means"),
      layers_(architecture.layers),
      tokens_(tokens),
      columns_(architecture.heads * architecture.d_head),
      means_(layers_, tokens_, columns_) {}

std::unique_ptr<BatchScorer> HeadMeansCollector::StartBatch(const ScoringBatch& batch) {
  return std::make_unique<HeadMeansBatch>(batch, layers_, this);
}

void HeadMeansCollector::Add(int64_t first_item, Part part) {
  common::MutexLock lock(&mutex_);
  waiting_.emplace(first_item, std::move(part));
  std::vector<double>& sums = means_.values();
  for (auto next = waiting_.begin(); next != waiting_.end() && next->first == next_item_;
       next = waiting_.begin()) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += next->second.sums[i];
    finite_ += next->second.finite;
    next_item_ += next->second.items;
    waiting_.erase(next);
  }
}

HeadMeans HeadMeansCollector::Finish() {
  common::MutexLock lock(&mutex_);
  const double factor =
      finite_ > 0 ? static_cast<double>(finite_) : std::numeric_limits<double>::quiet_NaN();
  for (double& value : means_.values()) value /= factor;
  return std::move(means_);
}

}  // namespace hopscope::engine

#include "worker/engine/scorers/accuracy_by_position.h"

#include <string>
#include <utility>

#include "common/spec/catalog.h"

namespace hopscope::engine {
namespace {

class PositionBatch : public BatchScorer {
 public:
  PositionBatch(const ScoringBatch& batch, int64_t window_tokens,
                std::unique_ptr<BatchScorer> accuracy, const MetricTable& correct,
                MetricTable* by_slot)
      : batch_(batch),
        window_tokens_(window_tokens),
        accuracy_(std::move(accuracy)),
        correct_(correct),
        by_slot_(*by_slot) {}

  void OnLogits(const MatrixView& logits) override {
    accuracy_->OnLogits(logits);
    for (size_t row = 0; row < batch_.sequences.size(); ++row) {
      const Sequence& sequence = batch_.sequences[row];
      const int64_t added = static_cast<int64_t>(sequence.tokens.size()) - window_tokens_;
      const int64_t item = batch_.items[row];
      by_slot_.item(item)[sequence.target - added] = *correct_.item(item);
    }
  }

 private:
  const ScoringBatch batch_;
  const int64_t window_tokens_;
  const std::unique_ptr<BatchScorer> accuracy_;
  const MetricTable& correct_;
  MetricTable& by_slot_;
};

}  // namespace

AccuracyByPosition::AccuracyByPosition(const v1::Window& window, int64_t items,
                                       ItemFailures* failures)
    : Scorer(std::string(spec::kAccuracyByPosition)),
      window_tokens_(int64_t{window.target()} + window.pre_target() + 1),
      accuracy_(items, failures) {
  tables_.emplace_back("correct", google::protobuf::Struct(),
                       MetricTable::Axes{.steps = window.target()}, items);
}

std::unique_ptr<BatchScorer> AccuracyByPosition::StartBatch(const ScoringBatch& batch) {
  return std::make_unique<PositionBatch>(batch, window_tokens_, accuracy_.StartBatch(batch),
                                         accuracy_.tables()[0], &tables_[0]);
}

}  // namespace hopscope::engine

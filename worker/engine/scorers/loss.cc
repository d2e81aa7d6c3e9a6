#include "worker/engine/scorers/loss.h"

#include "worker/engine/scorers/answer.h"

namespace hopscope::engine {
namespace {

class LossBatch : public BatchScorer {
 public:
  LossBatch(const ScoringBatch& batch, MetricTable* loss, ItemFailures* failures)
      : batch_(batch), loss_(*loss), failures_(*failures) {}

  void OnLogits(const MatrixView& logits) override {
    for (int64_t row = 0; row < logits.rows; ++row) {
      const int64_t item = batch_.items[row];
      const int32_t label = batch_.sequences[row].label;
      const Answer answer = AnswerOf(logits, row, label);
      if (!answer.finite) {
        failures_.Fail(item, "a logit after the last token is NaN or infinite");
      } else if (label >= 0) {
        *loss_.item(item) = answer.loss;
      }
    }
  }

 private:
  const ScoringBatch batch_;
  MetricTable& loss_;
  ItemFailures& failures_;
};

}  // namespace

Loss::Loss(int64_t items, ItemFailures* failures) : Scorer("loss"), failures_(failures) {
  tables_.emplace_back("loss", google::protobuf::Struct(), MetricTable::Axes{}, items);
}

std::unique_ptr<BatchScorer> Loss::StartBatch(const ScoringBatch& batch) {
  return std::make_unique<LossBatch>(batch, &tables_[0], failures_);
}

}  // namespace hopscope::engine

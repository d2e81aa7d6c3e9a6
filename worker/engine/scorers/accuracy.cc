#include "worker/engine/scorers/accuracy.h"

#include <utility>

#include "worker/engine/model/cpu_kernels.h"

namespace hopscope::engine {
namespace {

class AccuracyBatch : public BatchScorer {
 public:
  AccuracyBatch(const ScoringBatch& batch, MetricTable* correct, ItemFailures* failures)
      : batch_(batch), correct_(*correct), failures_(*failures) {}

  void OnLogits(const MatrixView& logits) override {
    for (int64_t row = 0; row < logits.rows; ++row) {
      const int64_t item = batch_.items[row];
      const int64_t answer =
          logits.float64 ? GetCpuKernels<double>().argmax(logits.columns, logits.Row<double>(row))
                         : GetCpuKernels<float>().argmax(logits.columns, logits.Row<float>(row));
      const int32_t label = batch_.sequences[row].label;
      if (answer < 0) {
        failures_.Fail(item, "a logit after the last token is NaN or infinite");
      } else if (label >= 0) {
        *correct_.item(item) = answer == label ? 1 : 0;
      }
    }
  }

 private:
  const ScoringBatch batch_;
  MetricTable& correct_;
  ItemFailures& failures_;
};

}  // namespace

Accuracy::Accuracy(int64_t items, ItemFailures* failures)
    : Scorer("accuracy"), failures_(failures) {
  tables_.emplace_back("correct", google::protobuf::Struct(), MetricTable::Axes{}, items);
}

std::unique_ptr<BatchScorer> Accuracy::StartBatch(const ScoringBatch& batch) {
  return std::make_unique<AccuracyBatch>(batch, &tables_[0], failures_);
}

}  // namespace hopscope::engine

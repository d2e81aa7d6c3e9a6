// A scorer: sees the forward passes of a unit's items and gives one value per item, layer and head
// for each of its metrics. All scorers of a unit share one forward pass.
//
// A scorer serves one unit. StartBatch and what it returns may be used by several threads at once,
// each with its own batch: the items of batches differ, and an item's values depend on that item
// alone. Tables may be read once all batches are done.
#ifndef HOPSCOPE_WORKER_ENGINE_SCORERS_SCORER_H_
#define HOPSCOPE_WORKER_ENGINE_SCORERS_SCORER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "google/protobuf/struct.pb.h"
#include "hopscope/v1/evaluation.pb.h"
#include "worker/engine/engine.h"
#include "worker/engine/model/activations.h"
#include "worker/engine/model/head_replacement.h"
#include "worker/engine/model/model.h"
#include "worker/engine/tasks/task.h"

namespace hopscope::engine {

// Items that have no result, with the reason. Entries of different items may be written at once.
class ItemFailures {
 public:
  explicit ItemFailures(int64_t items) : messages_(items) {}

  // The first message of an item stays.
  void Fail(int64_t item, std::string message) {
    if (messages_[item].empty()) messages_[item] = std::move(message);
  }
  bool failed(int64_t item) const { return !messages_[item].empty(); }
  const std::string& message(int64_t item) const { return messages_[item]; }

 private:
  std::vector<std::string> messages_;
};

// One metric's values: [items, steps, layers, heads, planes], where an axis that the metric lacks
// (0) has size 1. NaN stands for "no value". Entries of different items may be written at once.
class MetricTable {
 public:
  struct Axes {
    int32_t steps = 0;
    int32_t layers = 0;
    int32_t heads = 0;
    int32_t planes = 0;
  };

  // `extremes`: the smallest and the largest value of an item are reported beside the mean.
  MetricTable(std::string metric, google::protobuf::Struct params, Axes axes, int64_t items,
              bool extremes = false);

  const std::string& metric() const { return metric_; }
  // The scorer's parameters; where one lists several values, the one used here.
  const google::protobuf::Struct& params() const { return params_; }
  const Axes& axes() const { return axes_; }
  bool extremes() const { return extremes_; }
  int64_t items() const { return items_; }
  // Values of one item.
  int64_t cells() const { return cells_; }

  double* item(int64_t item) { return values_.data() + item * cells_; }
  const double* item(int64_t item) const { return values_.data() + item * cells_; }

 private:
  std::string metric_;
  google::protobuf::Struct params_;
  Axes axes_;
  int64_t items_;
  int64_t cells_;
  bool extremes_;
  std::vector<double> values_;
};

// Sequences of one length that go through the model together.
struct ScoringBatch {
  const Model* model = nullptr;
  absl::Span<const Sequence> sequences;  // a label of -1: not known
  absl::Span<const int64_t> items;       // for each of them, which of the unit's items it is
  const CancelFlag* cancel = nullptr;    // may be null; a scorer that sees it set may stop anywhere
};

// A scorer's part in one batch.
class BatchScorer : public ForwardObserver {
 public:
  // Logits after the last token, a row for each sequence.
  virtual void OnLogits(const MatrixView& /*logits*/) {}

  // What ended the batch's scoring early, if anything did; looked at after the last call. It ends
  // the evaluation.
  virtual absl::Status error() const { return absl::OkStatus(); }
};

class Scorer {
 public:
  explicit Scorer(std::string name) : name_(std::move(name)) {}
  virtual ~Scorer() = default;

  // As in the catalog (common/spec/catalog.h).
  const std::string& name() const { return name_; }

  // Whether every layer must have queries for every token; otherwise the last has only the last
  // token's.
  virtual bool NeedsAllQueries() const { return false; }

  // Whether it must be told the means of all heads' outputs (head_means.h), for sequences like
  // those of the unit, before the first batch.
  virtual bool NeedsHeadMeans() const { return false; }
  virtual void SetHeadMeans(std::shared_ptr<const HeadMeans> /*means*/) {}

  virtual std::unique_ptr<BatchScorer> StartBatch(const ScoringBatch& batch) = 0;

  // One for each metric and set of result parameters (spec::ResultParams), metrics first.
  const std::vector<MetricTable>& tables() const { return tables_; }

  // What a reader must know about the numbers, as in HeadScores.flags.
  const std::vector<std::string>& flags() const { return flags_; }

 protected:
  std::vector<MetricTable> tables_;
  std::vector<std::string> flags_;

 private:
  const std::string name_;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_SCORERS_SCORER_H_

#include "worker/engine/scorers/retrieval_head.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/spec/scorer_params.h"
#include "worker/engine/model/cpu_kernels.h"

namespace hopscope::engine {
namespace {

// Not known before the logits are there.
constexpr int32_t kModelsOwn = -1;

struct Step {
  int64_t query = 0;
  int32_t generated = kModelsOwn;
};

struct Search {
  std::pair<int32_t, int32_t> needle = {0, 0};  // [begin, end)
  std::vector<Step> steps;                      // rising
};

Search SearchOf(const Sequence& sequence, bool label) {
  Search search;
  const auto last = static_cast<int64_t>(sequence.tokens.size()) - 1;
  std::vector<int64_t> queries = {last};
  if (sequence.needle.has_value()) {
    search.needle = *sequence.needle;
    if (!sequence.queries.empty()) queries = {sequence.queries.begin(), sequence.queries.end()};
  } else if (!sequence.path.empty()) {
    search.needle = {sequence.target, sequence.target + 1};
  } else {
    return search;
  }
  for (const int64_t query : queries) {
    if (query < last) {
      search.steps.push_back({query, sequence.tokens[query + 1]});
    } else if (!label) {
      search.steps.push_back({query, kModelsOwn});
    } else if (sequence.label >= 0) {
      search.steps.push_back({query, sequence.label});
    }
  }
  return search;
}

class RetrievalHeadBatch : public BatchScorer {
 public:
  RetrievalHeadBatch(const ScoringBatch& batch, bool label, MetricTable* table)
      : batch_(batch), table_(*table) {
    const checkpoint::Architecture& a = batch.model->architecture();
    for (const Sequence& sequence : batch.sequences) {
      searches_.push_back(SearchOf(sequence, label));
    }
    copied_.resize(searches_.size() * a.layers * a.heads, 0);
    last_tokens_.resize(copied_.size(), kModelsOwn);
  }

  Interest interest() const override { return {.attention = true}; }

  void OnAttention(const AttentionWeights& attention) override {
    const Search& search = searches_[attention.sequence];
    const int64_t end = attention.first_query + attention.weights.rows;
    for (const Step& step : search.steps) {
      if (step.query < attention.first_query || step.query >= end) continue;
      const int64_t slot = attention.weights.float64 ? Top<double>(attention, step.query)
                                                     : Top<float>(attention, step.query);
      if (slot < search.needle.first || slot >= search.needle.second) continue;
      const int32_t token = batch_.sequences[attention.sequence].tokens[slot];
      const size_t cell = Cell(attention.sequence, attention.layer, attention.head);
      if (step.generated == kModelsOwn) {
        last_tokens_[cell] = token;
      } else if (step.generated == token) {
        ++copied_[cell];
      }
    }
  }

  void OnLogits(const MatrixView& logits) override {
    const checkpoint::Architecture& a = batch_.model->architecture();
    for (int64_t sequence = 0; sequence < logits.rows; ++sequence) {
      const Search& search = searches_[sequence];
      if (search.steps.empty()) continue;
      const int64_t answer =
          logits.float64
              ? GetCpuKernels<double>().argmax(logits.columns, logits.Row<double>(sequence))
              : GetCpuKernels<float>().argmax(logits.columns, logits.Row<float>(sequence));
      if (answer < 0) continue;  // a NaN, which accuracy reports
      const double length = search.needle.second - search.needle.first;
      double* const values = table_.item(batch_.items[sequence]);
      for (int64_t layer = 0; layer < a.layers; ++layer) {
        for (int64_t head = 0; head < a.heads; ++head) {
          const size_t cell = Cell(sequence, layer, head);
          const int64_t copied = copied_[cell] + (last_tokens_[cell] == answer ? 1 : 0);
          values[layer * a.heads + head] = static_cast<double>(copied) / length;
        }
      }
    }
  }

 private:
  template <typename T>
  static int64_t Top(const AttentionWeights& attention, int64_t query) {
    const T* const weights = attention.weights.Row<T>(query - attention.first_query);
    const int64_t keys = query - attention.first_key + 1;
    return attention.first_key + (std::max_element(weights, weights + keys) - weights);
  }

  size_t Cell(int64_t sequence, int64_t layer, int64_t head) const {
    const checkpoint::Architecture& a = batch_.model->architecture();
    return static_cast<size_t>((sequence * a.layers + layer) * a.heads + head);
  }

  const ScoringBatch batch_;
  MetricTable& table_;
  std::vector<Search> searches_;      // [sequences]
  std::vector<int64_t> copied_;       // [sequences, layers, heads]
  std::vector<int32_t> last_tokens_;  // the same: what a head would copy after the last token
};

}  // namespace

RetrievalHead::RetrievalHead(const v1::ScorerSpec& spec,
                             const checkpoint::Architecture& architecture, int64_t items)
    : Scorer("retrieval_head"),
      label_(spec.params().fields().at("last_token").string_value() == "label") {
  tables_.emplace_back("retrieval_score", spec::ResultParams(spec).front(),
                       MetricTable::Axes{.layers = static_cast<int32_t>(architecture.layers),
                                         .heads = static_cast<int32_t>(architecture.heads)},
                       items);
}

std::unique_ptr<BatchScorer> RetrievalHead::StartBatch(const ScoringBatch& batch) {
  return std::make_unique<RetrievalHeadBatch>(batch, label_, &tables_[0]);
}

}  // namespace hopscope::engine

#include "worker/engine/scorers/detectors.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace hopscope::engine {
namespace {

enum Metric { kPreviousToken, kDuplicateToken, kInduction, kDetectors };
constexpr const char* kMetrics[] = {"previous_token", "duplicate_token", "induction"};

DetectorOptions OptionsOf(const v1::ScorerSpec& spec) {
  const auto& fields = spec.params().fields();
  const std::string& form = fields.at("form").string_value();
  return {.form = form == "abs"           ? DetectorForm::kAbs
                  : form == "second_copy" ? DetectorForm::kSecondCopy
                  : form == "diagonal"    ? DetectorForm::kDiagonal
                                          : DetectorForm::kMul,
          .exclude_bos = fields.at("exclude_bos").bool_value(),
          .exclude_current_token = fields.at("exclude_current_token").bool_value(),
          .repeat_length = static_cast<int64_t>(fields.at("repeat_length").number_value())};
}

class DetectorsBatch : public BatchScorer {
 public:
  DetectorsBatch(const ScoringBatch& batch, const DetectorOptions& options,
                 const ChosenTables& chosen)
      : batch_(batch),
        options_(options),
        chosen_(chosen),
        tokens_(static_cast<int64_t>(batch.sequences[0].tokens.size())),
        repeat_(options.repeat_length > 0 ? options.repeat_length : tokens_ / 2),
        patterns_(options.form == DetectorForm::kMul || options.form == DetectorForm::kAbs),
        sums_(batch.sequences.size() * batch.model->architecture().heads) {
    for (const Sequence& sequence : batch.sequences) {
      if (patterns_) {
        FindEarlier(sequence.tokens);
      } else {
        repeats_.push_back(Repeats(sequence.tokens));
      }
    }
  }

  Interest interest() const override { return {.attention = true}; }

  void OnAttention(const AttentionWeights& attention) override {
    if (!patterns_ && !repeats_[attention.sequence]) return;
    if (attention.weights.float64) {
      AddRows<double>(attention);
    } else {
      AddRows<float>(attention);
    }
    if (attention.first_query + attention.weights.rows == tokens_) Finish(attention);
  }

 private:
  struct Sums {
    double all = 0;                  // of A, without what is excluded
    double hits[kDetectors] = {};    // of A where M is 1, or on the diagonal
    double counts[kDetectors] = {};  // entries of M that are 1, or of the diagonal
  };

  // For each token the last earlier one that is the same.
  void FindEarlier(const std::vector<int32_t>& tokens) {
    std::map<int32_t, int32_t> last;
    std::vector<int32_t>& earlier = earlier_.emplace_back(tokens.size(), -1);
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto [place, is_new] = last.try_emplace(tokens[i], static_cast<int32_t>(i));
      if (is_new) continue;
      earlier[i] = place->second;
      place->second = static_cast<int32_t>(i);
    }
  }

  bool Repeats(const std::vector<int32_t>& tokens) const {
    if (repeat_ < 1 || 2 * repeat_ > tokens_) return false;
    return std::equal(tokens.end() - 2 * repeat_, tokens.end() - repeat_, tokens.end() - repeat_);
  }

  template <typename T>
  void AddRows(const AttentionWeights& attention) {
    Sums& sums = sums_[attention.sequence * batch_.model->architecture().heads + attention.head];
    if (attention.first_query == 0) sums = {};
    for (int64_t r = 0; r < attention.weights.rows; ++r) {
      const int64_t query = attention.first_query + r;
      const T* const weights = attention.weights.Row<T>(r);
      const auto at = [&](int64_t key) {
        return key < attention.first_key ? 0.0
                                         : static_cast<double>(weights[key - attention.first_key]);
      };
      const auto add = [&](Metric metric, int64_t key) {
        sums.hits[metric] += at(key);
        sums.counts[metric] += 1;
      };
      if (!patterns_) {
        if (options_.form == DetectorForm::kSecondCopy && query < tokens_ - repeat_) continue;
        if (query >= 1) add(kPreviousToken, query - 1);
        if (query >= repeat_) add(kDuplicateToken, query - repeat_);
        if (query >= repeat_ - 1) add(kInduction, query - repeat_ + 1);
        continue;
      }
      const auto excluded = [&](int64_t key) {
        return (options_.exclude_bos && key == 0) ||
               (options_.exclude_current_token && key == query);
      };
      sums.all += 1;
      if (excluded(0)) sums.all -= at(0);
      if (query > 0 && excluded(query)) sums.all -= at(query);
      if (query >= 1 && !excluded(query - 1)) add(kPreviousToken, query - 1);
      const std::vector<int32_t>& earlier = earlier_[attention.sequence];
      for (int64_t same = earlier[query]; same >= 0; same = earlier[same]) {
        if (!excluded(same)) add(kDuplicateToken, same);
        if (!excluded(same + 1)) add(kInduction, same + 1);
      }
    }
  }

  void Finish(const AttentionWeights& at) {
    const Sums& sums = sums_[at.sequence * batch_.model->architecture().heads + at.head];
    for (const Metric metric : {kPreviousToken, kDuplicateToken, kInduction}) {
      double value = 0;
      if (options_.form == DetectorForm::kAbs) {
        // |A - M| is 1 - A where M is 1, and A elsewhere.
        const double distance = sums.all + sums.counts[metric] - 2 * sums.hits[metric];
        value = 1 - distance / static_cast<double>(tokens_);
      } else {
        const double base = options_.form == DetectorForm::kMul ? sums.all : sums.counts[metric];
        if (base <= 0) continue;
        value = sums.hits[metric] / base;
      }
      chosen_.Set(metric, batch_.items[at.sequence], at.layer, at.head, value);
    }
  }

  const ScoringBatch batch_;
  const DetectorOptions& options_;
  const ChosenTables& chosen_;
  const int64_t tokens_;
  const int64_t repeat_;
  const bool patterns_;
  std::vector<std::vector<int32_t>> earlier_;  // [sequences][tokens], -1: none; for patterns
  std::vector<bool> repeats_;                  // [sequences]; for the other forms
  std::vector<Sums> sums_;                     // [sequences, heads], of the layer that runs
};

}  // namespace

Detectors::Detectors(const v1::ScorerSpec& spec, const checkpoint::Architecture& architecture,
                     int64_t items, ItemFailures* failures)
    : Scorer("detectors"),
      options_(OptionsOf(spec)),
      chosen_(spec, kMetrics,
              {.layers = static_cast<int32_t>(architecture.layers),
               .heads = static_cast<int32_t>(architecture.heads)},
              items, &tables_, failures) {}

std::unique_ptr<BatchScorer> Detectors::StartBatch(const ScoringBatch& batch) {
  return std::make_unique<DetectorsBatch>(batch, options_, chosen_);
}

}  // namespace hopscope::engine

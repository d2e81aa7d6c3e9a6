#include "worker/engine/scorers/positional_symbolic.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/head_label.h"
#include "common/spec/catalog.h"
#include "common/spec/scorer_lengths.h"
#include "common/spec/scorer_params.h"
#include "worker/engine/scorers/block_swaps.h"
#include "worker/engine/scorers/exclusion.h"
#include "worker/engine/scorers/moved_logits.h"
#include "worker/engine/scorers/swap_scores.h"

namespace hopscope::engine {
namespace {

using Metric = PositionalSymbolic::Metric;
using Mode = PositionalSymbolic::Mode;
using Queries = PositionalSymbolic::Queries;
using Settings = PositionalSymbolic::Settings;

// Smallest slot with two keys before it.
constexpr int64_t kFirstQuery = 2;

// Tokens in front that the config calls special: beginning of text, padding.
int64_t LeadingSpecials(const checkpoint::Architecture& architecture,
                        const std::vector<int32_t>& tokens) {
  const std::vector<int64_t>& special = architecture.special_tokens;
  int64_t count = 0;
  while (count < static_cast<int64_t>(tokens.size()) &&
         std::find(special.begin(), special.end(), tokens[count]) != special.end()) {
    ++count;
  }
  return count;
}

// The blocks of keys first_slot .. query_slot - 1, numbered from first_slot: the sequence's own as
// far as the query sees them whole, or equal ones.
KeyBlocks BlocksOf(const Sequence& sequence, int64_t specials, int64_t first_slot,
                   int64_t query_slot, int64_t count) {
  if (sequence.blocks.empty()) {
    return EqualBlocks(std::max<int64_t>(0, specials - first_slot), query_slot - first_slot, count);
  }
  KeyBlocks blocks;
  for (const auto& [begin, end] : sequence.blocks) {
    if (begin >= first_slot && end <= query_slot && begin < end) {
      blocks.emplace_back(begin - first_slot, end - first_slot);
    }
  }
  return blocks;
}

template <typename T>
class PositionalSymbolicBatch : public BatchScorer {
 public:
  PositionalSymbolicBatch(const ScoringBatch& batch, const Settings& settings,
                          std::vector<MetricTable>* tables, ItemFailures* failures)
      : batch_(batch),
        settings_(settings),
        tables_(*tables),
        failures_(*failures),
        tokens_(static_cast<int64_t>(batch.sequences[0].tokens.size())),
        uses_blocks_(settings.mode == Mode::kBlocks ||
                     (settings.mode == Mode::kAuto && tokens_ - 1 > spec::kAutoTokenKeys)),
        rotary_(batch.model->rotary_tables<T>().AtLeast(tokens_)),
        logits_(&batch.model->architecture(), rotary_.get()),
        values_(tables->size()),
        sums_(tables->size()),
        counts_(tables->size()) {
    if (!uses_blocks_) return;
    for (const Sequence& sequence : batch.sequences) {
      specials_.push_back(LeadingSpecials(batch.model->architecture(), sequence.tokens));
    }
  }

  Interest interest() const override { return {.projections = true}; }

  void OnProjections(const LayerProjections& projections) override {
    const int64_t heads = batch_.model->architecture().heads;
    for (int64_t sequence = 0; sequence < projections.sequences; ++sequence) {
      for (int64_t head = 0; head < heads; ++head) {
        if (!ScoreHead(projections, sequence, head)) return;
      }
    }
  }

 private:
  // False where it was cancelled, as the functions below.
  bool ScoreHead(const LayerProjections& projections, int64_t sequence, int64_t head) {
    const int64_t layer = projections.layer;
    const int64_t item = batch_.items[sequence];
    if (settings_.queries == Queries::kLast) {
      if (!ScoreQuery(projections, sequence, head, tokens_ - 1)) return false;
      Keep(item, 0, layer, head, values_);
      return true;
    }
    if (settings_.queries == Queries::kHops) {
      const std::vector<int32_t>& slots = QuerySlots(batch_.sequences[sequence]);
      for (size_t step = 0; step < slots.size(); ++step) {
        if (slots[step] < kFirstQuery) continue;
        if (!ScoreQuery(projections, sequence, head, slots[step])) return false;
        Keep(item, static_cast<int64_t>(step), layer, head, values_);
      }
      return true;
    }
    std::fill(sums_.begin(), sums_.end(), 0);
    std::fill(counts_.begin(), counts_.end(), 0);
    for (int64_t query = kFirstQuery; query < tokens_; ++query) {
      if (!ScoreQuery(projections, sequence, head, query)) return false;
      for (size_t i = 0; i < values_.size(); ++i) {
        if (!values_[i].has_value()) continue;
        sums_[i] += *values_[i];
        ++counts_[i];
      }
    }
    for (size_t i = 0; i < values_.size(); ++i) {
      values_[i].reset();
      if (counts_[i] > 0) values_[i] = sums_[i] / static_cast<double>(counts_[i]);
    }
    Keep(item, 0, layer, head, values_);
    return true;
  }

  // Fills values_, one for each table.
  bool ScoreQuery(const LayerProjections& projections, int64_t sequence, int64_t head,
                  int64_t query_slot) {
    const checkpoint::Architecture& a = batch_.model->architecture();
    const int64_t group = a.heads / a.kv_heads;
    const int64_t window = a.attention_window[projections.layer];
    const int64_t first_slot = window > 0 ? std::max<int64_t>(0, query_slot - window + 1) : 0;
    const int64_t keys = query_slot - first_slot;
    const int64_t row = sequence * projections.tokens;
    logits_.Start(projections.layer, head, first_slot, query_slot,
                  projections.queries.Row<T>(row + query_slot) + head * a.d_head,
                  projections.keys.Row<T>(row + first_slot) + head / group * a.d_head,
                  projections.keys.stride);
    const double* const own = logits_.own().data();
    if (uses_blocks_) {
      const KeyBlocks blocks = BlocksOf(batch_.sequences[sequence], specials_[sequence], first_slot,
                                        query_slot, settings_.blocks);
      if (!ComputeBlockScores<T>(own, keys, own[keys], blocks, settings_.taus, settings_.extras,
                                 &logits_, batch_.cancel, &scores_)) {
        return false;
      }
    } else if (!ComputeSwapScores<T>(own, keys, own[keys], settings_.taus, &logits_, batch_.cancel,
                                     &scratch_, &scores_, settings_.extras)) {
      return false;
    }
    double bound = 0;
    if (settings_.bound &&
        !ComputeExclusionBound<T>(own, keys, &logits_, batch_.cancel, &scratch_, &bound)) {
      return false;
    }
    const size_t taus = settings_.taus.size();
    for (size_t i = 0; i < values_.size(); ++i) {
      values_[i] = Value(settings_.metrics[i / taus], i % taus, own, keys, bound);
    }
    return true;
  }

  std::optional<double> Value(Metric metric, size_t tau, const double* own, int64_t keys,
                              double bound) const {
    const SwapMeans& means = scores_.means;
    const auto of_swaps = [&](const std::vector<double>& values) {
      return scores_.has_swaps ? std::optional<double>(values[tau]) : std::nullopt;
    };
    const auto of_keys = [&](double value) {
      return keys >= 2 ? std::optional<double>(value) : std::nullopt;
    };
    switch (metric) {
      case Metric::kPositional:
        return of_swaps(means.positional);
      case Metric::kSymbolic:
        return of_swaps(means.symbolic);
      case Metric::kSelfMass:
        return scores_.self_mass;
      case Metric::kPositionalCentred:
        return of_swaps(means.positional_centred);
      case Metric::kSymbolicCentred:
        return of_swaps(means.symbolic_centred);
      case Metric::kSwappedMass:
        return of_swaps(means.swapped_mass);
      case Metric::kContrast:
        return of_swaps(means.contrast);
      case Metric::kExclusionRhs:
        return of_keys(bound);
      case Metric::kLogitVariance:
        return of_keys(LogitVariance(own, keys));
      case Metric::kExclusionSlack:
        return of_keys(bound - LogitVariance(own, keys));
      case Metric::kKeys:
        return static_cast<double>(scores_.swapped);
    }
    return std::nullopt;
  }

  void Keep(int64_t item, int64_t step, int64_t layer, int64_t head,
            const std::vector<std::optional<double>>& values) {
    const checkpoint::Architecture& a = batch_.model->architecture();
    const int64_t cell = (step * a.layers + layer) * a.heads + head;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!values[i].has_value()) continue;
      tables_[i].item(item)[cell] = *values[i];
      if (std::isfinite(*values[i])) continue;
      failures_.Fail(item, absl::StrCat(tables_[i].metric(), " of layer ", layer, " head ", head,
                                        " is NaN or infinite"));
    }
  }

  const ScoringBatch batch_;
  const Settings& settings_;
  std::vector<MetricTable>& tables_;
  ItemFailures& failures_;
  const int64_t tokens_;
  const bool uses_blocks_;
  std::vector<int64_t> specials_;  // [sequences]; for blocks alone
  const std::shared_ptr<const RotaryTable<T>> rotary_;
  HeadLogits<T> logits_;
  SwapScratch<T> scratch_;
  HeadScores scores_;
  std::vector<std::optional<double>> values_;  // [tables]
  std::vector<double> sums_;                   // over queries
  std::vector<int64_t> counts_;
};

// A choice's place among those of its rule.
int Choice(const v1::ScorerSpec& spec, absl::string_view param, absl::string_view value) {
  for (const spec::ScorerParamRule& rule : spec::ScorerParamRules(spec.name())) {
    if (rule.name != param) continue;
    const auto found = std::find(rule.choices.begin(), rule.choices.end(), value);
    return static_cast<int>(found - rule.choices.begin());
  }
  return 0;
}

Settings ReadSettings(const v1::ScorerSpec& spec) {
  const auto& params = spec.params().fields();
  Settings settings;
  for (const auto& tau : params.at("taus").list_value().values()) {
    settings.taus.push_back(tau.number_value());
  }
  settings.queries =
      static_cast<Queries>(Choice(spec, "queries", params.at("queries").string_value()));
  settings.mode = static_cast<Mode>(Choice(spec, "mode", params.at("mode").string_value()));
  settings.blocks = static_cast<int64_t>(params.at("blocks").number_value());
  settings.extras.eps = params.at("eps").number_value();
  for (const std::string& metric : spec::ResultMetrics(spec)) {
    settings.metrics.push_back(static_cast<Metric>(Choice(spec, "metrics", metric)));
  }
  const auto asked = [&settings](std::initializer_list<Metric> metrics) {
    return std::any_of(metrics.begin(), metrics.end(), [&settings](Metric metric) {
      return std::find(settings.metrics.begin(), settings.metrics.end(), metric) !=
             settings.metrics.end();
    });
  };
  settings.extras.centred = asked({Metric::kPositionalCentred, Metric::kSymbolicCentred});
  settings.extras.guard = asked({Metric::kSwappedMass, Metric::kContrast});
  settings.bound = asked({Metric::kExclusionRhs, Metric::kExclusionSlack});
  return settings;
}

}  // namespace

PositionalSymbolic::PositionalSymbolic(const v1::ScorerSpec& spec,
                                       const checkpoint::Architecture& architecture, int64_t items,
                                       ItemFailures* failures, int32_t queries)
    : Scorer("positional_symbolic"), settings_(ReadSettings(spec)), failures_(failures) {
  const MetricTable::Axes axes{.steps = settings_.queries == Queries::kHops ? queries : 0,
                               .layers = static_cast<int32_t>(architecture.layers),
                               .heads = static_cast<int32_t>(architecture.heads)};
  for (const std::string& metric : spec::ResultMetrics(spec)) {
    for (const google::protobuf::Struct& params : spec::ResultParams(spec)) {
      tables_.emplace_back(metric, params, axes, items);
    }
  }
  if (architecture.position == checkpoint::PositionKind::kLearned) {
    flags_.emplace_back(common::kPositionInContent);
  }
}

std::unique_ptr<BatchScorer> PositionalSymbolic::StartBatch(const ScoringBatch& batch) {
  if (batch.model->float64()) {
    return std::make_unique<PositionalSymbolicBatch<double>>(batch, settings_, &tables_, failures_);
  }
  return std::make_unique<PositionalSymbolicBatch<float>>(batch, settings_, &tables_, failures_);
}

}  // namespace hopscope::engine

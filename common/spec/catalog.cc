#include "common/spec/catalog.h"

#include <initializer_list>
#include <set>
#include <string>

#include "common/spec/scorer_params.h"

namespace hopscope::spec {
namespace {

v1::TaskCapability Task(absl::string_view name, absl::string_view description, int32_t vocab_size,
                        std::initializer_list<absl::string_view> paddings) {
  v1::TaskCapability task;
  task.set_name(std::string(name));
  task.set_description(std::string(description));
  task.set_min_hops(1);
  task.set_max_hops(4);
  task.set_vocab_size(vocab_size);
  task.mutable_default_window()->set_target(8);
  task.mutable_default_window()->set_pre_target(8);
  for (const absl::string_view padding : paddings) task.add_paddings(std::string(padding));
  return task;
}

v1::ScorerCapability Scorer(absl::string_view name, absl::string_view description,
                            std::initializer_list<absl::string_view> metrics) {
  v1::ScorerCapability scorer;
  scorer.set_name(std::string(name));
  scorer.set_description(std::string(description));
  for (const ScorerParamRule& rule : ScorerParamRules(name)) {
    v1::ScorerParam* param = scorer.add_params();
    param->set_name(rule.name);
    param->set_description(rule.description);
    *param->mutable_default_value() = rule.DefaultValue();
    param->set_allowed(rule.Allowed());
  }
  for (const absl::string_view metric : metrics) scorer.add_metrics(std::string(metric));
  return scorer;
}

template <typename Capability>
const Capability* Find(const std::vector<Capability>& all, absl::string_view name) {
  for (const Capability& one : all) {
    if (one.name() == name) return &one;
  }
  return nullptr;
}

}  // namespace

const std::vector<v1::TaskCapability>& Tasks() {
  static const auto* const tasks = new std::vector<v1::TaskCapability>{
      Task("number",
           "Follow integers: from the last token, an integer v points v slots back; the answer is "
           "the first letter on that path (arXiv 2605.31558, Number task).",
           137, {"random", "window", "constant"}),
      Task("letter",
           "Follow letters: from the last token, a pair (x, y) points to the earlier pair that "
           "begins with y; the answer is the first pair with an integer on that path "
           "(arXiv 2605.31558, Letter task).",
           129, {"random", "pairs", "window", "constant"}),
  };
  return *tasks;
}

const std::vector<v1::ScorerCapability>& Scorers() {
  static const auto* const scorers = new std::vector<v1::ScorerCapability>{
      Scorer("accuracy",
             "Share of sequences whose label has the largest logit of the whole vocabulary after "
             "the last token (the lowest id on ties). Part of every cell's result, asked for or "
             "not.",
             {"correct"}),
      Scorer("positional_symbolic",
             "Positional and symbolic score of every head (arXiv 2605.31558, App. D): how far its "
             "attention stays with the slot, or goes along with the content, when two keys are "
             "swapped; over all swaps, weighted towards those that matter. self_mass is the "
             "attention that the query pays to itself, which the two scores leave out.",
             {"positional", "symbolic", "self_mass"}),
      Scorer(
          "frequency_use",
          "What each plane of the rotary embedding does in each head, for the last token's "
          "query (planes from the fastest): max_logit, its largest unscaled logit over all keys "
          "(arXiv 2605.31558, Fig. 8); query_norm and key_norm, the mean length of the two "
          "columns that it turns (arXiv 2410.06205); share, its part of the largest logit; "
          "plane_positional and plane_symbolic, the two scores of the plane as a head of its "
          "own (arXiv 2511.11579). For models with rotary positions.",
          {"max_logit", "query_norm", "key_norm", "share", "plane_positional", "plane_symbolic"}),
      Scorer("logit_gap",
             "How clearly the last token's query prefers one key: gap, its largest logit minus the "
             "second largest; self_logit, that against its own key; target_gap, that of the slot "
             "of the answer minus the largest other one. Smallest and largest values come with "
             "the means.",
             {"gap", "self_logit", "target_gap"}),
      Scorer("attention_stats",
             "What the attention of each head looks like: entropy in nats, also as part of that "
             "of even attention (norm_entropy), attention to the first token (sink_mass), to the "
             "query itself (self_mass) and to the last keys (window_mass), mean_distance in slots, "
             "max_weight; the mean over all queries, and of the last query (*_last).",
             {"entropy", "norm_entropy", "sink_mass", "self_mass", "mean_distance", "max_weight",
              "window_mass", "entropy_last", "norm_entropy_last", "sink_mass_last",
              "self_mass_last", "mean_distance_last", "max_weight_last", "window_mass_last"}),
      Scorer("detectors",
             "How far each head attends to the previous token, to earlier copies of its token "
             "(duplicate_token), and to what came after them (induction): as detect_head of "
             "TransformerLens, or on sequences that repeat a run of tokens.",
             {"previous_token", "duplicate_token", "induction"}),
      Scorer("retrieval_head",
             "How much of a needle a head copies into the answer (arXiv 2404.15574): decoding "
             "steps at which it attends most to a slot of the needle that holds the token which "
             "is generated, divided by the length of the needle. Needle and steps are those that "
             "a sequence names; else the slot of the answer and the last token.",
             {"retrieval_score"}),
  };
  return *scorers;
}

const v1::TaskCapability* FindTask(absl::string_view name) { return Find(Tasks(), name); }

const v1::ScorerCapability* FindScorer(absl::string_view name) { return Find(Scorers(), name); }

std::vector<std::string> ResultMetrics(const v1::ScorerSpec& scorer) {
  const v1::ScorerCapability* known = FindScorer(scorer.name());
  if (known == nullptr) return {};
  std::vector<std::string> metrics(known->metrics().begin(), known->metrics().end());
  for (const ScorerParamRule& rule : ScorerParamRules(scorer.name())) {
    if (rule.list != ScorerParamRule::List::kSelectsMetrics) continue;
    std::set<std::string> selected;
    for (const auto& value : scorer.params().fields().at(rule.name).list_value().values()) {
      selected.insert(value.string_value());
    }
    std::erase_if(metrics,
                  [&selected](const std::string& one) { return selected.count(one) == 0; });
  }
  return metrics;
}

const v1::Limits& DefaultLimits() {
  static const auto* const limits = [] {
    auto* made = new v1::Limits;
    made->set_max_cells_per_job(100'000);
    made->set_max_samples_per_cell(10'000'000);
    made->set_max_added_tokens(5'000);
    made->set_max_message_bytes(4 << 20);
    made->set_max_units_per_job(10'000'000);
    return made;
  }();
  return *limits;
}

v1::Limits CompleteLimits(const v1::Limits& limits) {
  v1::Limits complete = DefaultLimits();
  complete.MergeFrom(limits);  // leaves alone what is 0 in `limits`
  return complete;
}

int64_t SequenceLength(const v1::TaskSpec& task, int32_t added_tokens) {
  v1::Window window;
  if (task.has_window()) {
    window = task.window();
  } else if (const v1::TaskCapability* known = FindTask(task.task()); known != nullptr) {
    window = known->default_window();
  }
  return int64_t{added_tokens} + window.target() + window.pre_target() + 1;
}

}  // namespace hopscope::spec

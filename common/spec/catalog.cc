#include "common/spec/catalog.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>

#include "common/spec/scorer_params.h"

namespace hopscope::spec {
namespace {

// The largest window of most tasks. Keeps a block of balanced items, its slots times the values of
// an answer, in the tens of thousands.
constexpr int32_t kMaxWindowSlots = 512;

v1::Window Sizes(int32_t target, int32_t pre_target) {
  v1::Window window;
  window.set_target(target);
  window.set_pre_target(pre_target);
  return window;
}

v1::TaskCapability Task(absl::string_view name, absl::string_view description,
                        std::initializer_list<absl::string_view> paddings) {
  v1::TaskCapability task;
  task.set_name(std::string(name));
  task.set_description(std::string(description));
  task.set_min_hops(1);
  task.set_max_hops(1);
  for (const absl::string_view padding : paddings) task.add_paddings(std::string(padding));
  return task;
}

// A task of one to four hops, with a window of two parts.
v1::TaskCapability HopTask(absl::string_view name, absl::string_view description,
                           std::initializer_list<absl::string_view> paddings) {
  v1::TaskCapability task = Task(name, description, paddings);
  task.set_max_hops(4);
  *task.mutable_default_window() = Sizes(8, 8);
  *task.mutable_min_window() = Sizes(1, 0);
  *task.mutable_max_window() = Sizes(kMaxWindowSlots, kMaxWindowSlots);
  task.set_max_window_slots(kMaxWindowSlots);
  task.set_vocab_size(VocabSize(name, task.default_window()));
  return task;
}

// A task of one look-up, whose window is target slots alone.
v1::TaskCapability LookUpTask(absl::string_view name, absl::string_view description,
                              int32_t min_slots, int32_t max_slots,
                              std::initializer_list<absl::string_view> paddings) {
  v1::TaskCapability task = Task(name, description, paddings);
  *task.mutable_default_window() = Sizes(16, 0);
  *task.mutable_min_window() = Sizes(min_slots, 0);
  *task.mutable_max_window() = Sizes(max_slots, 0);
  task.set_max_window_slots(max_slots);
  task.set_vocab_size(VocabSize(name, task.default_window()));
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
      HopTask("number",
              "Follow integers: from the last token, an integer v points v slots back; the answer "
              "is the first letter on that path (arXiv 2605.31558, Number task). A window of more "
              "than 16 slots has further integers, one more token id for each slot.",
              {"random", "window", "constant"}),
      HopTask("letter",
              "Follow letters: from the last token, a pair (x, y) points to the earlier pair that "
              "begins with y; the answer is the first pair with an integer on that path "
              "(arXiv 2605.31558, Letter task).",
              {"random", "pairs", "window", "constant"}),
      LookUpTask("index",
                 "Look up by position: the last token names a slot of the window, and the answer "
                 "is the symbol there (arXiv 2511.11579, Index). The vocabulary has one token id "
                 "for each slot.",
                 1, kMaxWindowSlots, {"random", "window", "constant"}),
      LookUpTask("retrieval",
                 "Look up by content: the window holds pairs of different symbols, each with an "
                 "attribute; the last token is one of the symbols, and the answer is its attribute "
                 "(arXiv 2511.11579, Information Retrieval).",
                 1, kPairSymbols, {"random", "window", "constant"}),
      LookUpTask("partial_induction",
                 "Look up by content and position: the symbol that the last token names is in two "
                 "or three pairs of the window, and the answer is the attribute in the last of "
                 "them (arXiv 2511.11579, Partial Induction).",
                 2, kMaxWindowSlots, {"random", "constant"}),
      Task(kTokensTask,
           "Sequences of your own, as JSON lines: tokens_file in a spec file, or tokens_digest "
           "after UploadTokens. Answers count where a line has a label.",
           {}),
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
      Scorer(kAccuracyByPosition,
             "Accuracy for each slot of the window that an answer stood at, one row a slot: step "
             "is the slot, from 0. Not for task tokens, whose sequences have no window.",
             {"correct"}),
      Scorer(
          "positional_symbolic",
          "Positional and symbolic score of every head (arXiv 2605.31558, App. D): how far its "
          "attention stays with the slot, or goes along with the content, when two keys are "
          "swapped; over all swaps, weighted towards those that matter. self_mass is the "
          "attention that the query pays to itself, which the two scores leave out. On request, "
          "of the same swaps: the two scores with the uniform attention subtracted (*_centred), "
          "the attention on what is swapped (swapped_mass) and how unequal it is (contrast), "
          "both needed for a label, and how many keys or blocks there were (keys); and of single "
          "keys, the exclusion principle (arXiv 2511.11579, Theorem 1): the variance of their "
          "logits, its bound, which is 0 only for a head that is both (exclusion_rhs), and the "
          "difference (exclusion_slack).",
          {"positional", "symbolic", "self_mass", "positional_centred", "symbolic_centred",
           "swapped_mass", "contrast", "exclusion_rhs", "logit_variance", "exclusion_slack",
           "keys"}),
      Scorer("loss",
             "Cross entropy of the label over the whole vocabulary after the last token, in nats.",
             {"loss"}),
      Scorer("ablation",
             "Causal test of heads: accuracy and loss when heads' outputs are replaced, and what "
             "that costs against the same sequence with every head as it is (accuracy_drop, "
             "loss_rise). positional_only and symbolic_only are not defined for models with a soft "
             "cap on attention logits.",
             {"accuracy", "loss", "accuracy_drop", "loss_rise"}),
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
    made->set_max_tokens_bytes_per_upload(int64_t{256} << 20);
    made->set_max_tokens_bytes_per_tenant(int64_t{1} << 30);
    return made;
  }();
  return *limits;
}

v1::Limits CompleteLimits(const v1::Limits& limits) {
  v1::Limits complete = DefaultLimits();
  complete.MergeFrom(limits);  // leaves alone what is 0 in `limits`
  return complete;
}

int32_t VocabSize(absl::string_view task, const v1::Window& window) {
  if (task == "number") {
    return 1 + kNumberIntegers + kNumberLetters +
           std::max(0, window.target() + window.pre_target() - kNumberIntegers);
  }
  if (task == "letter") return 1 + 8 * 8 + 8 * 8;
  if (task == "index") return 1 + kIndexSymbols + window.target();
  if (task == "retrieval" || task == "partial_induction") {
    return 1 + kPairSymbols * kPairAttributes + kPairSymbols + kPairAttributes;
  }
  return 0;
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

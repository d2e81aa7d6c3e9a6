#include "common/spec/validate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/spec/catalog.h"
#include "common/spec/reasons.h"
#include "common/spec/scorer_lengths.h"
#include "common/spec/scorer_params.h"
#include "common/spec/sequences.h"
#include "common/spec/text.h"
#include "common/status.h"

namespace hopscope::spec {
namespace {

using common::InvalidField;

constexpr size_t kMaxNameBytes = 200;
constexpr size_t kMaxLabelBytes = 63;
constexpr int kMaxLabels = 32;
constexpr size_t kMaxTenantBytes = 63;
constexpr size_t kMaxCheckpointBytes = 1024;
constexpr int kMaxScorers = 16;
// A job's spec travels with the job: this keeps what is copied into each task in proportion.
constexpr int kMaxTasks = 1000;
constexpr int32_t kMaxPriority = 100;
constexpr double kMaxDeadlineSeconds = 366.0 * 24 * 3600;
constexpr int64_t kDefaultSeed = 42;

std::string At(absl::string_view field, int index) { return absl::StrCat(field, "[", index, "]"); }

// Letters, digits, '-', '_' and '.', beginning with a letter or digit.
bool IsIdentifier(absl::string_view text) {
  if (text.empty() || !absl::ascii_isalnum(text[0])) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

// A product and a sum that stop at the largest value.
int64_t Multiply(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

int64_t Add(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

absl::Status CheckText(absl::string_view text, size_t max_bytes, absl::string_view field) {
  const std::string allowed =
      absl::StrCat("at most ", max_bytes, " bytes of UTF-8 without control characters");
  if (text.size() > max_bytes) {
    return InvalidField(kLimitExceeded, field, absl::StrCat("a text of ", text.size(), " bytes"),
                        allowed);
  }
  if (!IsPrintableUtf8(text)) return InvalidField(kInvalidText, field, Quoted(text), allowed);
  return absl::OkStatus();
}

// The first value that was there before, by index; -1 where all differ.
template <typename Values>
int FirstDuplicate(const Values& values) {
  std::set<typename Values::value_type> seen;
  for (int i = 0; i < values.size(); ++i) {
    if (!seen.insert(values[i]).second) return i;
  }
  return -1;
}

template <typename Values>
absl::Status CheckNumbersDiffer(const Values& values, absl::string_view field) {
  const int duplicate = FirstDuplicate(values);
  if (duplicate < 0) return absl::OkStatus();
  return InvalidField(kDuplicate, At(field, duplicate), absl::StrCat(values[duplicate]),
                      "each value once");
}

absl::Status CheckCheckpoints(const google::protobuf::RepeatedPtrField<std::string>& checkpoints,
                              absl::string_view field) {
  for (int i = 0; i < checkpoints.size(); ++i) {
    if (checkpoints[i].empty()) {
      return InvalidField(kFieldMissing, At(field, i), Quoted(""),
                          "a folder or glob under the model root");
    }
    HOPSCOPE_RETURN_IF_ERROR(CheckText(checkpoints[i], kMaxCheckpointBytes, At(field, i)));
  }
  const int duplicate = FirstDuplicate(checkpoints);
  if (duplicate < 0) return absl::OkStatus();
  return InvalidField(kDuplicate, At(field, duplicate), Quoted(checkpoints[duplicate]),
                      "each checkpoint once");
}

absl::Status NormalizeScorers(absl::string_view field,
                              google::protobuf::RepeatedPtrField<v1::ScorerSpec>* scorers) {
  if (scorers->size() > kMaxScorers) {
    return InvalidField(kLimitExceeded, field, absl::StrCat(scorers->size(), " scorers"),
                        absl::StrCat("at most ", kMaxScorers));
  }
  for (int i = 0; i < scorers->size(); ++i) {
    v1::ScorerSpec& scorer = *scorers->Mutable(i);
    const std::string path = At(field, i);
    if (FindScorer(scorer.name()) == nullptr) {
      std::vector<std::string> names;
      for (const v1::ScorerCapability& one : Scorers()) names.push_back(one.name());
      return InvalidField(kNameUnknown, absl::StrCat(path, ".name"), Quoted(scorer.name()),
                          OneOf(scorer.name(), names));
    }
    HOPSCOPE_RETURN_IF_ERROR(NormalizeScorerParams(path, &scorer));
    for (int other = 0; other < i; ++other) {
      if (!ScorersOverlap(scorer, scorers->Get(other))) continue;
      return InvalidField(kDuplicate, path, Quoted(scorer.name()),
                          absl::StrCat(At(field, other),
                                       " asks for the same result; name a scorer again only with "
                                       "other parameters"));
    }
  }
  return absl::OkStatus();
}

// That at each of the task's lengths its scorers can be afforded and differ. `field` is the path of
// its scorers.
absl::Status CheckScorerLengths(absl::string_view field, const v1::TaskSpec& task) {
  for (const int32_t added : task.added_tokens()) {
    const int64_t tokens = SequenceLength(task, added);
    const v1::TaskSpec decided = TaskAtLength(task, added);
    for (int i = 0; i < decided.scorers_size(); ++i) {
      HOPSCOPE_RETURN_IF_ERROR(CheckScorerLength(At(field, i), decided.scorers(i), tokens));
      for (int other = 0; other < i; ++other) {
        if (!ScorersOverlap(decided.scorers(i), decided.scorers(other))) continue;
        return InvalidField(kDuplicate, At(field, i), Quoted(decided.scorers(i).name()),
                            absl::StrCat(At(field, other), " asks for the same result where ",
                                         "sequences have ", tokens, " tokens"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLabels(const google::protobuf::Map<std::string, std::string>& labels) {
  if (labels.size() > kMaxLabels) {
    return InvalidField(kLimitExceeded, "spec.labels", absl::StrCat(labels.size(), " labels"),
                        absl::StrCat("at most ", kMaxLabels));
  }
  // Sorted, so that the same spec always gets the same error.
  for (const auto& [key, value] :
       std::map<std::string, std::string>(labels.begin(), labels.end())) {
    if (key.size() > kMaxLabelBytes || !IsIdentifier(key)) {
      return InvalidField(kInvalidText, "spec.labels", Quoted(key),
                          absl::StrCat("keys are 1 to ", kMaxLabelBytes,
                                       " letters, digits, '-', '_' and '.', beginning with a "
                                       "letter or digit"));
    }
    HOPSCOPE_RETURN_IF_ERROR(
        CheckText(value, kMaxLabelBytes, absl::StrCat("spec.labels[", key, "]")));
  }
  return absl::OkStatus();
}

// Everything but tasks.
absl::Status NormalizeJob(v1::EvalJobSpec* spec) {
  HOPSCOPE_RETURN_IF_ERROR(CheckText(spec->name(), kMaxNameBytes, "spec.name"));
  if (spec->scorers().empty()) spec->add_scorers()->set_name("accuracy");
  HOPSCOPE_RETURN_IF_ERROR(NormalizeScorers("spec.scorers", spec->mutable_scorers()));
  if (spec->seeds().empty()) spec->add_seeds(kDefaultSeed);
  HOPSCOPE_RETURN_IF_ERROR(CheckNumbersDiffer(spec->seeds(), "spec.seeds"));
  HOPSCOPE_RETURN_IF_ERROR(CheckCheckpoints(spec->checkpoints(), "spec.checkpoints"));
  HOPSCOPE_RETURN_IF_ERROR(CheckLabels(spec->labels()));
  if (!v1::Dtype_IsValid(spec->dtype())) {
    return InvalidField(kOutOfRange, "spec.dtype", absl::StrCat(spec->dtype()),
                        "DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_BFLOAT16 or DTYPE_FLOAT16");
  }
  if (spec->dtype() == v1::DTYPE_UNSPECIFIED) spec->set_dtype(v1::DTYPE_FLOAT32);
  if (spec->priority() < -kMaxPriority || spec->priority() > kMaxPriority) {
    return InvalidField(kOutOfRange, "spec.priority", absl::StrCat(spec->priority()),
                        absl::StrCat(-kMaxPriority, " to ", kMaxPriority));
  }
  if (spec->tenant().empty()) spec->set_tenant("default");
  if (spec->tenant().size() > kMaxTenantBytes || !IsIdentifier(spec->tenant())) {
    return InvalidField(kInvalidText, "spec.tenant", Quoted(spec->tenant()),
                        absl::StrCat("1 to ", kMaxTenantBytes,
                                     " letters, digits, '-', '_' and '.', beginning with a letter "
                                     "or digit"));
  }
  // Written so that NaN fails.
  if (!(spec->deadline_s() >= 0 && spec->deadline_s() <= kMaxDeadlineSeconds)) {
    return InvalidField(kOutOfRange, "spec.deadline_s", absl::StrCat(spec->deadline_s()),
                        absl::StrCat("0 (none) to ", kMaxDeadlineSeconds, " seconds"));
  }
  return absl::OkStatus();
}

// Sequences of the user's own: they are what they are, so that nothing else may be asked for.
absl::Status NormalizeTokensTask(const std::string& field, const v1::Limits& limits,
                                 v1::TaskSpec* task) {
  const auto path = [&field](absl::string_view name) { return absl::StrCat(field, ".", name); };
  const auto fixed = [&](absl::string_view name, google::protobuf::RepeatedField<int32_t>* values,
                         int32_t value) {
    if (values->empty()) values->Add(value);
    if (values->size() == 1 && values->Get(0) == value) return absl::OkStatus();
    return InvalidField(kUnsupported, path(name), absl::StrJoin(*values, ", "),
                        absl::StrCat("task ", kTokensTask, " has ", value, " alone"));
  };
  HOPSCOPE_RETURN_IF_ERROR(fixed("hops", task->mutable_hops(), 1));
  HOPSCOPE_RETURN_IF_ERROR(fixed("added_tokens", task->mutable_added_tokens(), 0));
  if (task->has_window()) {
    HOPSCOPE_RETURN_IF_ERROR(CheckWindow(*FindTask(kTokensTask), task->window(), path("window")));
  }
  if (!task->padding().empty()) {
    return InvalidField(kUnsupported, path("padding"), Quoted(task->padding()),
                        absl::StrCat("nothing: task ", kTokensTask, " adds no tokens"));
  }
  if (task->samples() < 0 || task->samples() > limits.max_samples_per_cell()) {
    return InvalidField(kOutOfRange, path("samples"), absl::StrCat(task->samples()),
                        absl::StrCat("0 (all sequences) to ", limits.max_samples_per_cell()));
  }
  constexpr absl::string_view kDigestForm = "sha256: and 64 hexadecimal digits, from UploadTokens";
  if (task->tokens_digest().empty()) {
    return InvalidField(kFieldMissing, path("tokens_digest"), "nothing",
                        absl::StrCat(kDigestForm, "; in a spec file, tokens_file: PATH"));
  }
  absl::string_view digits = task->tokens_digest();
  if (!absl::ConsumePrefix(&digits, "sha256:") || digits.size() != 64 ||
      !std::all_of(digits.begin(), digits.end(),
                   [](char c) { return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'); })) {
    return InvalidField(kInvalidText, path("tokens_digest"), Quoted(task->tokens_digest()),
                        kDigestForm);
  }
  HOPSCOPE_RETURN_IF_ERROR(CheckCheckpoints(task->checkpoints(), path("checkpoints")));
  return NormalizeScorers(path("scorers"), task->mutable_scorers());
}

// One task, without what the job's own lists give it.
absl::Status NormalizeTask(const std::string& field, const v1::Limits& limits, v1::TaskSpec* task) {
  const auto path = [&field](absl::string_view name) { return absl::StrCat(field, ".", name); };
  const v1::TaskCapability* known = FindTask(task->task());
  if (known == nullptr) {
    std::vector<std::string> names;
    for (const v1::TaskCapability& one : Tasks()) names.push_back(one.name());
    return InvalidField(kNameUnknown, path("task"), Quoted(task->task()),
                        OneOf(task->task(), names));
  }
  if (task->task() == kTokensTask) return NormalizeTokensTask(field, limits, task);
  if (!task->has_window()) *task->mutable_window() = known->default_window();
  HOPSCOPE_RETURN_IF_ERROR(CheckWindow(*known, task->window(), path("window")));
  if (task->padding().empty()) task->set_padding(known->paddings(0));
  if (task->hops().empty()) {
    return InvalidField(kFieldMissing, path("hops"), "an empty list", "at least one hop count");
  }
  for (int i = 0; i < task->hops_size(); ++i) {
    HOPSCOPE_RETURN_IF_ERROR(CheckHops(*known, task->window(), task->hops(i), At(path("hops"), i)));
    HOPSCOPE_RETURN_IF_ERROR(
        CheckPadding(*known, task->window(), task->hops(i), task->padding(), path("padding")));
  }
  HOPSCOPE_RETURN_IF_ERROR(CheckNumbersDiffer(task->hops(), path("hops")));
  if (task->added_tokens().empty()) task->add_added_tokens(0);
  for (int i = 0; i < task->added_tokens_size(); ++i) {
    if (task->added_tokens(i) < 0 || task->added_tokens(i) > limits.max_added_tokens()) {
      return InvalidField(kOutOfRange, At(path("added_tokens"), i),
                          absl::StrCat(task->added_tokens(i)),
                          absl::StrCat("0 to ", limits.max_added_tokens()));
    }
  }
  HOPSCOPE_RETURN_IF_ERROR(CheckNumbersDiffer(task->added_tokens(), path("added_tokens")));
  if (task->samples() < 1 || task->samples() > limits.max_samples_per_cell()) {
    return InvalidField(kOutOfRange, path("samples"), absl::StrCat(task->samples()),
                        absl::StrCat("1 to ", limits.max_samples_per_cell(), " a cell"));
  }
  HOPSCOPE_RETURN_IF_ERROR(CheckCheckpoints(task->checkpoints(), path("checkpoints")));
  HOPSCOPE_RETURN_IF_ERROR(NormalizeScorers(path("scorers"), task->mutable_scorers()));
  if (!task->tokens_digest().empty()) {
    return InvalidField(kUnsupported, path("tokens_digest"), Quoted(task->tokens_digest()),
                        absl::StrCat("nothing: task ", task->task(), " makes its own sequences"));
  }
  return absl::OkStatus();
}

// Counts cells without expanding anything. A glob stands for at least one checkpoint.
absl::Status CheckCellCount(const v1::EvalJobSpec& spec, const v1::Limits& limits) {
  int64_t cells = 0;
  for (const v1::TaskSpec& task : spec.tasks()) {
    const int64_t checkpoints =
        task.checkpoints().empty() ? spec.checkpoints_size() : task.checkpoints_size();
    const int64_t points = Multiply(task.hops_size(), task.added_tokens_size());
    const int64_t seeds = task.task() == kTokensTask ? 1 : spec.seeds_size();
    cells = Add(cells, Multiply(Multiply(points, checkpoints), seeds));
  }
  const std::string counted =
      cells == INT64_MAX ? "too many cells to count" : absl::StrCat("at least ", cells, " cells");
  if (cells > limits.max_cells_per_job()) {
    return InvalidField(kLimitExceeded, "spec", counted,
                        absl::StrCat("at most ", limits.max_cells_per_job(),
                                     " cells (hops x added_tokens x checkpoints x seeds) a job"));
  }
  // Each cell is at least one unit.
  if (cells > limits.max_units_per_job()) {
    return InvalidField(kLimitExceeded, "spec", counted,
                        absl::StrCat("at most ", limits.max_units_per_job(),
                                     " units a job, and a cell has at least one"));
  }
  return absl::OkStatus();
}

// Two tasks may share a name, but no cell.
absl::Status CheckCellsDiffer(const v1::EvalJobSpec& spec) {
  using Cell = std::tuple<absl::string_view, int32_t, int32_t, absl::string_view, int32_t, int32_t,
                          absl::string_view, absl::string_view>;
  std::map<Cell, int> seen;
  for (int i = 0; i < spec.tasks_size(); ++i) {
    const v1::TaskSpec& task = spec.tasks(i);
    for (const int32_t hops : task.hops()) {
      for (const int32_t added : task.added_tokens()) {
        for (const std::string& checkpoint : task.checkpoints()) {
          const Cell cell = {task.task(),
                             hops,
                             added,
                             checkpoint,
                             task.window().target(),
                             task.window().pre_target(),
                             task.padding(),
                             task.tokens_digest()};
          const auto [at, inserted] = seen.emplace(cell, i);
          if (inserted) continue;
          return InvalidField(
              kDuplicate, At("spec.tasks", i),
              absl::StrCat("the cell task ", task.task(), ", hops ", hops, ", added_tokens ", added,
                           ", checkpoint ", Quoted(checkpoint)),
              absl::StrCat("it is in ", At("spec.tasks", at->second),
                           " already; each cell once, unless window or padding differ"));
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::EvalJobSpec> Normalize(const v1::EvalJobSpec& spec,
                                          const v1::Limits& given_limits) {
  const v1::Limits limits = CompleteLimits(given_limits);
  if (spec.tasks().empty() || spec.tasks_size() > kMaxTasks) {
    return InvalidField(spec.tasks().empty() ? kFieldMissing : kLimitExceeded, "spec.tasks",
                        absl::StrCat("a list of ", spec.tasks_size()),
                        absl::StrCat("1 to ", kMaxTasks, " tasks"));
  }
  v1::EvalJobSpec normal = spec;
  HOPSCOPE_RETURN_IF_ERROR(NormalizeJob(&normal));
  for (int i = 0; i < normal.tasks_size(); ++i) {
    v1::TaskSpec* task = normal.mutable_tasks(i);
    const std::string field = At("spec.tasks", i);
    HOPSCOPE_RETURN_IF_ERROR(NormalizeTask(field, limits, task));
    if (task->checkpoints().empty() && normal.checkpoints().empty()) {
      return InvalidField(kFieldMissing, absl::StrCat(field, ".checkpoints"), "an empty list",
                          "at least one folder or glob under the model root, here or in "
                          "spec.checkpoints");
    }
  }
  HOPSCOPE_RETURN_IF_ERROR(CheckCellCount(normal, limits));
  for (int i = 0; i < normal.tasks_size(); ++i) {
    v1::TaskSpec& task = *normal.mutable_tasks(i);
    if (task.checkpoints().empty()) *task.mutable_checkpoints() = normal.checkpoints();
    const bool own_scorers = !task.scorers().empty();
    if (!own_scorers) *task.mutable_scorers() = normal.scorers();
    HOPSCOPE_RETURN_IF_ERROR(CheckScorerLengths(
        own_scorers ? absl::StrCat(At("spec.tasks", i), ".scorers") : "spec.scorers", task));
  }
  for (int i = 0; i < normal.tasks_size(); ++i) {
    if (normal.tasks(i).task() != kTokensTask) continue;
    for (const v1::ScorerSpec& scorer : normal.tasks(i).scorers()) {
      const std::string field = absl::StrCat(At("spec.tasks", i), ".scorers");
      if (scorer.name() == kAccuracyByPosition) {
        return InvalidField(kUnsupported, field, Quoted(scorer.name()),
                            absl::StrCat("the sequences of task ", kTokensTask, " have no window"));
      }
      if (scorer.name() != "ablation") continue;
      for (const auto& kind : scorer.params().fields().at("kinds").list_value().values()) {
        if (kind.string_value() != "mean") continue;
        return InvalidField(kUnsupported, field, "ablation by the mean",
                            absl::StrCat("zero, positional_only or symbolic_only: means are those "
                                         "of a task's own validation sequences, and task ",
                                         kTokensTask, " has none"));
      }
    }
  }
  HOPSCOPE_RETURN_IF_ERROR(CheckCellsDiffer(normal));
  // Leaves room in a message for the rest of the job.
  const auto bytes = static_cast<int64_t>(normal.ByteSizeLong());
  if (bytes > limits.max_message_bytes() / 2) {
    return InvalidField(kLimitExceeded, "spec",
                        absl::StrCat("a spec of ", bytes, " bytes with its defaults filled in"),
                        absl::StrCat("at most ", limits.max_message_bytes() / 2,
                                     " bytes; globs and fewer tasks make it shorter"));
  }
  return normal;
}

}  // namespace hopscope::spec

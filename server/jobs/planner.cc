#include "server/jobs/planner.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/cost.h"
#include "common/spec/catalog.h"
#include "common/spec/reasons.h"
#include "common/spec/scorer_fit.h"
#include "common/spec/scorer_lengths.h"
#include "common/spec/text.h"
#include "common/status.h"
#include "server/jobs/field_error.h"
#include "server/jobs/score_cost.h"

namespace hopscope::jobs {
namespace {

// Most tokens of a unit of uploaded sequences, and bytes as they were uploaded (but for a single
// longer one), so that a worker can hold them.
constexpr int64_t kMaxUnitTokens = 1 << 20;
constexpr int64_t kMaxUnitBytes = int64_t{16} << 20;

// Bytes of a cell's own result, and of one head's mean, standard error and count.
constexpr int64_t kCellResultBytes = 128;
constexpr int64_t kHeadResultBytes = 24;

absl::Status TooMany(absl::string_view what, int64_t count, int64_t limit) {
  return common::InvalidField(spec::kLimitExceeded, "spec.tasks", absl::StrCat(count, " ", what),
                              absl::StrCat("at most ", limit, " ", what, " a job"));
}

// A checkpoint that was opened, by position in the plan.
struct OpenedCheckpoint {
  checkpoint::Architecture architecture;
  v1::ModelShape shape;
};

// The uploaded sequences of a task.
struct Sequences {
  std::shared_ptr<const TokensIndex> index;  // null: the task makes its own
  int64_t count = 0;                         // the first so many are used
};

// Bytes of a number in the format that a job computes in.
int64_t BytesPerElement(v1::Dtype dtype) {
  switch (dtype) {
    case v1::DTYPE_FLOAT64:
      return 8;
    case v1::DTYPE_BFLOAT16:
    case v1::DTYPE_FLOAT16:
      return 2;
    default:
      return 4;
  }
}

class Planner {
 public:
  Planner(const v1::EvalJobSpec& spec, const checkpoint::ModelRoot& models,
          const v1::Limits& limits, bool digests, const FindTokens& find_tokens)
      : models_(models), limits_(limits), digests_(digests), find_tokens_(find_tokens) {
    plan_.job.spec = spec;
  }

  absl::StatusOr<Plan> Make() {
    const v1::EvalJobSpec& spec = plan_.job.spec;
    for (int task = 0; task < spec.tasks_size(); ++task) {
      HOPSCOPE_RETURN_IF_ERROR(ResolveTask(task));
    }
    HOPSCOPE_RETURN_IF_ERROR(CheckCellCount());
    for (int task = 0; task < spec.tasks_size(); ++task) {
      HOPSCOPE_RETURN_IF_ERROR(OpenCheckpoints(task));
    }
    for (int task = 0; task < spec.tasks_size(); ++task) {
      for (const int32_t checkpoint : checkpoints_of_task_[task]) {
        HOPSCOPE_RETURN_IF_ERROR(CheckCellsAreNew(task, checkpoint));
        HOPSCOPE_RETURN_IF_ERROR(AddCells(task, checkpoint));
      }
    }
    std::sort(plan_.job.cuts.begin(), plan_.job.cuts.end(),
              [](const store::CutRow& a, const store::CutRow& b) {
                return std::tie(a.task, a.checkpoint) < std::tie(b.task, b.checkpoint);
              });
    return std::move(plan_);
  }

 private:
  // A checkpoint of a task entry, and which of the entry's names or globs it is from.
  struct NamedCheckpoint {
    std::string name;
    int entry = 0;
  };

  static std::string CheckpointField(int task, int entry) {
    return absl::StrCat("spec.tasks[", task, "].checkpoints[", entry, "]");
  }

  // Finds the names of a task entry's checkpoints, each once.
  absl::Status ResolveTask(int task) {
    const v1::TaskSpec& entry = plan_.job.spec.tasks(task);
    HOPSCOPE_RETURN_IF_ERROR(FindSequences(task));
    std::vector<NamedCheckpoint>& found = names_of_task_.emplace_back();
    absl::flat_hash_set<std::string> seen;
    for (int i = 0; i < entry.checkpoints_size(); ++i) {
      absl::StatusOr<std::vector<std::string>> names = models_.Resolve(entry.checkpoints(i));
      if (!names.ok()) return AtField(names.status(), CheckpointField(task, i));
      for (std::string& name : *names) {
        if (seen.insert(name).second) found.push_back({.name = std::move(name), .entry = i});
      }
    }
    return absl::OkStatus();
  }

  // Finds a task's uploaded sequences, where it has some.
  absl::Status FindSequences(int task) {
    const v1::TaskSpec& entry = plan_.job.spec.tasks(task);
    Sequences& sequences = sequences_of_task_.emplace_back();
    if (entry.task() != spec::kTokensTask) return absl::OkStatus();
    HOPSCOPE_ASSIGN_OR_RETURN(
        sequences.index,
        find_tokens_(entry.tokens_digest(), absl::StrCat("spec.tasks[", task, "].tokens_digest")));
    const auto lines = static_cast<int64_t>(sequences.index->entries.size());
    sequences.count = entry.samples() == 0 ? lines : entry.samples();
    if (sequences.count > lines || sequences.count > limits_.max_samples_per_cell()) {
      return common::InvalidField(
          spec::kOutOfRange, absl::StrCat("spec.tasks[", task, "].samples"),
          absl::StrCat(sequences.count),
          absl::StrCat("0 (all) to ", std::min(lines, limits_.max_samples_per_cell()), " of the ",
                       lines, " sequences that were uploaded"));
    }
    int64_t longest = 0;
    for (int64_t item = 0; item < sequences.count; ++item) {
      longest = std::max<int64_t>(longest, sequences.index->entries[item].tokens);
    }
    for (int i = 0; i < entry.scorers_size(); ++i) {
      const std::string field = absl::StrCat("spec.tasks[", task, "].scorers[", i, "]");
      HOPSCOPE_RETURN_IF_ERROR(spec::CheckScorerLength(field, entry.scorers(i), longest));
      const auto& params = entry.scorers(i).params().fields();
      const auto queries = params.find("queries");
      if (queries != params.end() && queries->second.string_value() == "hops") {
        return common::InvalidField(spec::kUnsupported, absl::StrCat(field, ".params.queries"),
                                    "\"hops\"", "last or all: uploaded sequences have no hops");
      }
    }
    return absl::OkStatus();
  }

  // That a checkpoint has the token ids and positions of a task's uploaded sequences.
  absl::Status CheckSequences(int task, int32_t checkpoint, absl::string_view field) {
    const Sequences& sequences = sequences_of_task_[task];
    const int64_t ids = opened_[checkpoint].architecture.vocab_size;
    const v1::ModelShape& shape = opened_[checkpoint].shape;
    const std::string& name = plan_.job.checkpoints[checkpoint].ref.name();
    for (int64_t item = 0; item < sequences.count; ++item) {
      const TokensIndex::Entry& entry = sequences.index->entries[item];
      if (entry.max_id >= ids) {
        return common::MakeError(
            absl::StatusCode::kFailedPrecondition, "VOCABULARY_TOO_SMALL",
            absl::StrCat(field, ": line ", entry.line, " of the sequences has token id ",
                         entry.max_id, ", checkpoint ", spec::Quoted(name), " has ids 0 to ",
                         ids - 1),
            {{"field", std::string(field)},
             {"value", absl::StrCat(ids)},
             {"allowed", absl::StrCat("at least ", entry.max_id + 1)}});
      }
      if (shape.learned_positions() && entry.tokens > shape.n_positions()) {
        return common::MakeError(
            absl::StatusCode::kFailedPrecondition, "SEQUENCE_TOO_LONG",
            absl::StrCat(field, ": line ", entry.line, " of the sequences has ", entry.tokens,
                         " tokens, checkpoint ", spec::Quoted(name), " has learned positions for ",
                         shape.n_positions()),
            {{"field", std::string(field)},
             {"value", absl::StrCat(entry.tokens)},
             {"allowed", absl::StrCat("at most ", shape.n_positions())}});
      }
    }
    return absl::OkStatus();
  }

  // Opens them, and checks them against the entry.
  absl::Status OpenCheckpoints(int task) {
    const v1::TaskSpec& entry = plan_.job.spec.tasks(task);
    std::vector<int32_t>& checkpoints = checkpoints_of_task_.emplace_back();
    for (const NamedCheckpoint& named : names_of_task_[task]) {
      const std::string field = CheckpointField(task, named.entry);
      const absl::StatusOr<int32_t> checkpoint = OpenOnce(named.name);
      if (!checkpoint.ok()) return AtField(checkpoint.status(), field);
      if (sequences_of_task_[task].index != nullptr) {
        HOPSCOPE_RETURN_IF_ERROR(CheckSequences(task, *checkpoint, field));
      } else {
        HOPSCOPE_RETURN_IF_ERROR(CheckVocabulary(entry, *checkpoint, field));
        HOPSCOPE_RETURN_IF_ERROR(CheckLength(entry, task, *checkpoint));
      }
      HOPSCOPE_RETURN_IF_ERROR(CheckScorers(entry, task, *checkpoint));
      checkpoints.push_back(*checkpoint);
    }
    return absl::OkStatus();
  }

  // The position in the plan of a checkpoint, opened on first use.
  absl::StatusOr<int32_t> OpenOnce(const std::string& name) {
    const auto known = positions_.find(name);
    if (known != positions_.end()) return known->second;
    HOPSCOPE_ASSIGN_OR_RETURN(const checkpoint::Checkpoint opened, models_.OpenCheckpoint(name));
    store::CheckpointRow row;
    row.ref.set_name(name);
    if (digests_) {
      HOPSCOPE_ASSIGN_OR_RETURN(*row.ref.mutable_digest(), models_.Digest(name));
    }
    row.family = opened.architecture().family;
    // As a worker holds them: it may be given the job where they fit.
    row.weight_bytes = static_cast<int64_t>(
        checkpoint::WeightBytes(opened.architecture(), BytesPerElement(plan_.job.spec.dtype())));
    row.layers = static_cast<int32_t>(opened.architecture().layers);
    row.heads = static_cast<int32_t>(opened.architecture().heads);
    const auto position = static_cast<int32_t>(opened_.size());
    opened_.push_back({.architecture = opened.architecture(), .shape = opened.shape()});
    plan_.job.checkpoints.push_back(std::move(row));
    positions_.emplace(name, position);
    return position;
  }

  absl::Status CheckVocabulary(const v1::TaskSpec& entry, int32_t checkpoint,
                               absl::string_view field) {
    const int64_t needed = spec::VocabSize(entry.task(), entry.window());
    const int64_t found = opened_[checkpoint].architecture.vocab_size;
    const std::string& name = plan_.job.checkpoints[checkpoint].ref.name();
    if (found < needed) {
      return common::MakeError(
          absl::StatusCode::kFailedPrecondition, "VOCABULARY_TOO_SMALL",
          absl::StrCat(field, ": checkpoint ", spec::Quoted(name), " has ", found,
                       " token ids, task ", entry.task(), " needs ", needed, " for a window of ",
                       entry.window().target() + entry.window().pre_target(), " slots"),
          {{"field", std::string(field)},
           {"value", absl::StrCat(found)},
           {"allowed", absl::StrCat("at least ", needed)}});
    }
    // A window that needs fewer ids than another one of the task is no reason to warn.
    const int64_t usual = std::max<int64_t>(needed, spec::FindTask(entry.task())->vocab_size());
    if (found > usual && warned_.insert({entry.task(), checkpoint}).second) {
      plan_.job.warnings.push_back(absl::StrCat("checkpoint ", spec::Quoted(name), " has ", found,
                                                " token ids, task ", entry.task(), " uses ", needed,
                                                ": was it trained for this task?"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckLength(const v1::TaskSpec& entry, int task, int32_t checkpoint) {
    const v1::ModelShape& shape = opened_[checkpoint].shape;
    if (!shape.learned_positions()) return absl::OkStatus();
    for (int i = 0; i < entry.added_tokens_size(); ++i) {
      const int64_t length = spec::SequenceLength(entry, entry.added_tokens(i));
      if (length <= shape.n_positions()) continue;
      const std::string field = absl::StrCat("spec.tasks[", task, "].added_tokens[", i, "]");
      const int64_t window = length - entry.added_tokens(i);
      return common::MakeError(
          absl::StatusCode::kFailedPrecondition, "SEQUENCE_TOO_LONG",
          absl::StrCat(field, ": ", entry.added_tokens(i), " added tokens make sequences of ",
                       length, " tokens, but checkpoint ",
                       spec::Quoted(plan_.job.checkpoints[checkpoint].ref.name()),
                       " has learned positions for ", shape.n_positions()),
          {{"field", field},
           {"value", absl::StrCat(entry.added_tokens(i))},
           {"allowed", absl::StrCat("at most ", shape.n_positions() - window)}});
    }
    return absl::OkStatus();
  }

  absl::Status CheckScorers(const v1::TaskSpec& entry, int task, int32_t checkpoint) {
    const checkpoint::Architecture& architecture = opened_[checkpoint].architecture;
    const std::string model =
        absl::StrCat("checkpoint ", spec::Quoted(plan_.job.checkpoints[checkpoint].ref.name()));
    for (int i = 0; i < entry.scorers_size(); ++i) {
      const v1::ScorerSpec& scorer = entry.scorers(i);
      HOPSCOPE_RETURN_IF_ERROR(spec::CheckScorerFits(
          absl::StrCat("spec.tasks[", task, "].scorers[", i, "]"), scorer, architecture, model));
      const std::string caveat = spec::ScorerCaveat(scorer, architecture);
      if (!caveat.empty() && warned_.insert({caveat, checkpoint}).second) {
        plan_.job.warnings.push_back(absl::StrCat(model, " ", caveat));
      }
    }
    return absl::OkStatus();
  }

  // Before there are any, and before a checkpoint is opened, so that a huge matrix costs nothing.
  absl::Status CheckCellCount() const {
    const v1::EvalJobSpec& spec = plan_.job.spec;
    double cells = 0;
    for (int task = 0; task < spec.tasks_size(); ++task) {
      const v1::TaskSpec& entry = spec.tasks(task);
      cells += static_cast<double>(names_of_task_[task].size()) * entry.hops_size() *
               entry.added_tokens_size() *
               (entry.task() == spec::kTokensTask ? 1 : spec.seeds_size());
    }
    if (cells > static_cast<double>(limits_.max_cells_per_job())) {
      return TooMany("cells", static_cast<int64_t>(cells), limits_.max_cells_per_job());
    }
    return absl::OkStatus();
  }

  // That no earlier task entry has one of the cells, which globs can hide from a look at the spec
  // alone: their results could not be told apart.
  absl::Status CheckCellsAreNew(int task, int32_t checkpoint) {
    const v1::TaskSpec& entry = plan_.job.spec.tasks(task);
    for (const int32_t hops : entry.hops()) {
      for (const int32_t added : entry.added_tokens()) {
        const auto [known, is_new] = task_of_cell_.emplace(
            CellKey(entry.task(), checkpoint, hops, added, entry.window().target(),
                    entry.window().pre_target(),
                    entry.task() == spec::kTokensTask ? entry.tokens_digest() : entry.padding()),
            task);
        if (is_new) continue;
        return common::InvalidField(
            spec::kDuplicate, absl::StrCat("spec.tasks[", task, "]"),
            absl::StrCat("the cell task ", entry.task(), ", hops ", hops, ", added_tokens ", added,
                         ", checkpoint ",
                         spec::Quoted(plan_.job.checkpoints[checkpoint].ref.name())),
            absl::StrCat("it is in spec.tasks[", known->second,
                         "] already; each cell once, unless window or padding differ"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddCells(int task, int32_t checkpoint) {
    const v1::EvalJobSpec& spec = plan_.job.spec;
    const v1::TaskSpec& entry = spec.tasks(task);
    if (sequences_of_task_[task].index != nullptr) return AddTokensCell(task, checkpoint);
    const int64_t values = ResultValues(entry, opened_[checkpoint].architecture);
    v1::PlanEstimate& estimate = plan_.job.estimate;
    for (const int32_t hops : entry.hops()) {
      for (int i = 0; i < entry.added_tokens_size(); ++i) {
        const double flops_per_item = FlopsPerItem(entry, checkpoint, hops, entry.added_tokens(i));
        for (const int64_t seed : spec.seeds()) {
          store::CellRow& cell = plan_.cells.emplace_back();
          cell.index = static_cast<int32_t>(plan_.cells.size()) - 1;
          cell.checkpoint = checkpoint;
          cell.task = task;
          cell.hops = hops;
          cell.added_tokens = entry.added_tokens(i);
          cell.seed = seed;
          cell.items = entry.samples();
          cell.flops_per_item = flops_per_item;
          cell.items_per_unit = static_cast<int64_t>(
              std::clamp(kUnitFlops / cell.flops_per_item, 1.0, static_cast<double>(cell.items)));
          const auto items = static_cast<double>(cell.items);
          estimate.set_cells(estimate.cells() + 1);
          estimate.set_units(estimate.units() + cell.units());
          estimate.set_sequences(estimate.sequences() + cell.items);
          estimate.set_tokens(estimate.tokens() +
                              cell.items * spec::SequenceLength(entry, cell.added_tokens));
          estimate.set_flops(estimate.flops() + items * cell.flops_per_item);
          estimate.set_result_bytes(estimate.result_bytes() + kCellResultBytes +
                                    values * kHeadResultBytes);
        }
      }
    }
    return CheckUnitCount();
  }

  // After each checkpoint of a task: what is planned in memory stays in proportion.
  absl::Status CheckUnitCount() const {
    const int64_t units = plan_.job.estimate.units();
    if (units <= limits_.max_units_per_job()) return absl::OkStatus();
    return TooMany("units", units, limits_.max_units_per_job());
  }

  // Uploaded sequences do not depend on a seed: one cell, whatever the seeds. Its items differ in
  // cost, so that its units differ in size.
  absl::Status AddTokensCell(int task, int32_t checkpoint) {
    const v1::TaskSpec& entry = plan_.job.spec.tasks(task);
    const Sequences& sequences = sequences_of_task_[task];
    store::CutRow& cut = plan_.job.cuts.emplace_back();
    cut.task = task;
    cut.checkpoint = checkpoint;
    absl::flat_hash_map<int64_t, double> flops_of_length;
    double unit_flops = 0;
    int64_t unit_tokens = 0;
    int64_t unit_bytes = 0;
    double flops = 0;
    int64_t tokens = 0;
    for (int64_t item = 0; item < sequences.count; ++item) {
      const int64_t length = sequences.index->entries[item].tokens;
      double& item_flops = flops_of_length[length];
      if (item_flops == 0) item_flops = SequenceFlops(entry, checkpoint, entry.hops(0), length);
      const int64_t bytes = sequences.index->entries[item].bytes;
      if (unit_tokens > 0 &&
          (unit_flops + item_flops > kUnitFlops || unit_tokens + length > kMaxUnitTokens ||
           unit_bytes + bytes > kMaxUnitBytes)) {
        cut.ends.push_back(item);
        unit_flops = 0;
        unit_tokens = 0;
        unit_bytes = 0;
      }
      unit_bytes += bytes;
      unit_flops += item_flops;
      unit_tokens += length;
      flops += item_flops;
      tokens += length;
    }
    cut.ends.push_back(sequences.count);

    store::CellRow& cell = plan_.cells.emplace_back();
    cell.index = static_cast<int32_t>(plan_.cells.size()) - 1;
    cell.checkpoint = checkpoint;
    cell.task = task;
    cell.hops = entry.hops(0);
    cell.added_tokens = entry.added_tokens(0);
    cell.seed = plan_.job.spec.seeds(0);
    cell.items = sequences.count;
    cell.cut_units = static_cast<int64_t>(cut.ends.size());
    cell.flops_per_item = flops / static_cast<double>(sequences.count);
    v1::PlanEstimate& estimate = plan_.job.estimate;
    estimate.set_cells(estimate.cells() + 1);
    estimate.set_units(estimate.units() + cell.units());
    estimate.set_sequences(estimate.sequences() + cell.items);
    estimate.set_tokens(estimate.tokens() + tokens);
    estimate.set_flops(estimate.flops() + flops);
    estimate.set_result_bytes(estimate.result_bytes() + kCellResultBytes +
                              ResultValues(entry, opened_[checkpoint].architecture) *
                                  kHeadResultBytes);
    return CheckUnitCount();
  }

  // Numbers that the scores of a cell have.
  static int64_t ResultValues(const v1::TaskSpec& entry,
                              const checkpoint::Architecture& architecture) {
    int64_t values = 0;
    for (const v1::ScorerSpec& scorer : entry.scorers()) {
      values += ScorerValues(scorer, architecture, entry.window().target());
    }
    return values;
  }

  double FlopsPerItem(const v1::TaskSpec& entry, int32_t checkpoint, int32_t hops,
                      int32_t added_tokens) const {
    return SequenceFlops(entry, checkpoint, hops, spec::SequenceLength(entry, added_tokens));
  }

  double SequenceFlops(const v1::TaskSpec& entry, int32_t checkpoint, int32_t hops,
                       int64_t tokens) const {
    const checkpoint::Architecture& architecture = opened_[checkpoint].architecture;
    const bool every_query =
        std::any_of(entry.scorers().begin(), entry.scorers().end(), NeedsEveryQuery);
    double flops = checkpoint::ForwardFlops(
        architecture, tokens,
        every_query ? checkpoint::Outputs::kEveryQuery : checkpoint::Outputs::kLastPosition);
    for (const v1::ScorerSpec& scorer : entry.scorers()) {
      flops += ScorerFlops(scorer, architecture, tokens, hops);
    }
    return std::max(flops, 1.0);
  }

  // Task, checkpoint, hops, added tokens, both sizes of the window, padding or digest: a cell but
  // for its seed.
  using CellKey = std::tuple<std::string, int32_t, int32_t, int32_t, int32_t, int32_t, std::string>;

  const checkpoint::ModelRoot& models_;
  const v1::Limits& limits_;
  const bool digests_;
  const FindTokens& find_tokens_;
  Plan plan_;
  std::vector<OpenedCheckpoint> opened_;
  absl::flat_hash_map<std::string, int32_t> positions_;  // in the plan, by name
  std::vector<std::vector<NamedCheckpoint>> names_of_task_;
  std::vector<std::vector<int32_t>> checkpoints_of_task_;
  std::vector<Sequences> sequences_of_task_;
  absl::flat_hash_map<CellKey, int> task_of_cell_;
  // What was warned of, task or caveat, and the checkpoint.
  absl::flat_hash_set<std::pair<std::string, int32_t>> warned_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const TokensIndex>> NoTokens(const std::string& digest,
                                                            absl::string_view field) {
  return TokensNotFound(digest, field);
}

absl::StatusOr<Plan> MakePlan(const v1::EvalJobSpec& spec, const checkpoint::ModelRoot& models,
                              const v1::Limits& limits, bool digests,
                              const FindTokens& find_tokens) {
  return Planner(spec, models, limits, digests, find_tokens).Make();
}

}  // namespace hopscope::jobs

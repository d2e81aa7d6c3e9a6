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
#include "common/spec/scorer_models.h"
#include "common/spec/text.h"
#include "common/status.h"
#include "server/jobs/field_error.h"
#include "server/jobs/score_cost.h"

namespace hopscope::jobs {
namespace {

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

class Planner {
 public:
  Planner(const v1::EvalJobSpec& spec, const checkpoint::ModelRoot& models,
          const v1::Limits& limits, bool digests)
      : models_(models), limits_(limits), digests_(digests) {
    plan_.job.spec = spec;
  }

  absl::StatusOr<Plan> Make() {
    const v1::EvalJobSpec& spec = plan_.job.spec;
    for (int task = 0; task < spec.tasks_size(); ++task) {
      HOPSCOPE_RETURN_IF_ERROR(ResolveTask(task));
    }
    HOPSCOPE_RETURN_IF_ERROR(CheckCellCount());
    for (int task = 0; task < spec.tasks_size(); ++task) {
      for (const int32_t checkpoint : checkpoints_of_task_[task]) {
        HOPSCOPE_RETURN_IF_ERROR(CheckCellsAreNew(task, checkpoint));
        AddCells(task, checkpoint);
      }
    }
    v1::PlanEstimate& estimate = plan_.job.estimate;
    if (estimate.units() > limits_.max_units_per_job()) {
      return TooMany("units", estimate.units(), limits_.max_units_per_job());
    }
    return std::move(plan_);
  }

 private:
  // Finds the checkpoints of a task entry and checks them against it.
  absl::Status ResolveTask(int task) {
    const v1::TaskSpec& entry = plan_.job.spec.tasks(task);
    std::vector<int32_t>& checkpoints = checkpoints_of_task_.emplace_back();
    absl::flat_hash_set<int32_t> seen;
    for (int i = 0; i < entry.checkpoints_size(); ++i) {
      const std::string field = absl::StrCat("spec.tasks[", task, "].checkpoints[", i, "]");
      const absl::StatusOr<std::vector<std::string>> names = models_.Resolve(entry.checkpoints(i));
      if (!names.ok()) return AtField(names.status(), field);
      for (const std::string& name : *names) {
        const absl::StatusOr<int32_t> checkpoint = OpenOnce(name);
        if (!checkpoint.ok()) return AtField(checkpoint.status(), field);
        if (!seen.insert(*checkpoint).second) continue;
        HOPSCOPE_RETURN_IF_ERROR(CheckVocabulary(entry, *checkpoint, field));
        HOPSCOPE_RETURN_IF_ERROR(CheckLength(entry, task, *checkpoint));
        HOPSCOPE_RETURN_IF_ERROR(CheckScorers(entry, task, *checkpoint));
        checkpoints.push_back(*checkpoint);
      }
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
    row.weight_bytes = opened.weight_bytes();
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
    const v1::TaskCapability* task = spec::FindTask(entry.task());
    if (task == nullptr) return absl::OkStatus();  // its tokens are the user's own
    const int64_t needed = task->vocab_size();
    const int64_t found = opened_[checkpoint].architecture.vocab_size;
    const std::string& name = plan_.job.checkpoints[checkpoint].ref.name();
    if (found < needed) {
      return common::MakeError(
          absl::StatusCode::kFailedPrecondition, "VOCABULARY_TOO_SMALL",
          absl::StrCat(field, ": checkpoint ", spec::Quoted(name), " has ", found,
                       " token ids, task ", entry.task(), " needs ", needed),
          {{"field", std::string(field)},
           {"value", absl::StrCat(found)},
           {"allowed", absl::StrCat("at least ", needed)}});
    }
    if (found > needed && warned_.insert({entry.task(), checkpoint}).second) {
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

  // That the checkpoint has what every scorer needs.
  absl::Status CheckScorers(const v1::TaskSpec& entry, int task, int32_t checkpoint) const {
    const spec::ScoredModel model = {.rotary = RotaryPlanes(opened_[checkpoint].architecture) > 0};
    for (int i = 0; i < entry.scorers_size(); ++i) {
      HOPSCOPE_RETURN_IF_ERROR(common::Annotate(
          spec::CheckScorerModel(absl::StrCat("spec.tasks[", task, "].scorers[", i, "]"),
                                 entry.scorers(i).name(), model),
          absl::StrCat("checkpoint ", spec::Quoted(plan_.job.checkpoints[checkpoint].ref.name()))));
    }
    return absl::OkStatus();
  }

  // Before there are any, so that a huge matrix costs nothing.
  absl::Status CheckCellCount() const {
    const v1::EvalJobSpec& spec = plan_.job.spec;
    double cells = 0;
    for (int task = 0; task < spec.tasks_size(); ++task) {
      const v1::TaskSpec& entry = spec.tasks(task);
      cells += static_cast<double>(checkpoints_of_task_[task].size()) * entry.hops_size() *
               entry.added_tokens_size() * spec.seeds_size();
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
                    entry.window().pre_target(), entry.padding()),
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

  void AddCells(int task, int32_t checkpoint) {
    const v1::EvalJobSpec& spec = plan_.job.spec;
    const v1::TaskSpec& entry = spec.tasks(task);
    const store::CheckpointRow& model = plan_.job.checkpoints[checkpoint];
    // By length, since hop counts and seeds do not change the cost.
    std::vector<double> flops_per_item;
    int64_t values = 0;
    for (const v1::ScorerSpec& scorer : entry.scorers()) {
      values += ScorerValues(scorer, opened_[checkpoint].architecture);
    }
    for (const int32_t added : entry.added_tokens()) {
      flops_per_item.push_back(FlopsPerItem(entry, checkpoint, added));
    }
    v1::PlanEstimate& estimate = plan_.job.estimate;
    for (const int32_t hops : entry.hops()) {
      for (int i = 0; i < entry.added_tokens_size(); ++i) {
        for (const int64_t seed : spec.seeds()) {
          store::CellRow& cell = plan_.cells.emplace_back();
          cell.index = static_cast<int32_t>(plan_.cells.size()) - 1;
          cell.checkpoint = checkpoint;
          cell.task = task;
          cell.hops = hops;
          cell.added_tokens = entry.added_tokens(i);
          cell.seed = seed;
          cell.items = entry.samples();
          cell.flops_per_item = flops_per_item[i];
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
                                    values * model.layers * model.heads * kHeadResultBytes);
        }
      }
    }
  }

  double FlopsPerItem(const v1::TaskSpec& entry, int32_t checkpoint, int32_t added_tokens) const {
    const checkpoint::Architecture& architecture = opened_[checkpoint].architecture;
    const int64_t tokens = spec::SequenceLength(entry, added_tokens);
    double flops =
        checkpoint::ForwardFlops(architecture, tokens, checkpoint::Outputs::kLastPosition);
    for (const v1::ScorerSpec& scorer : entry.scorers()) {
      flops += ScorerFlops(scorer, architecture, tokens);
    }
    return std::max(flops, 1.0);
  }

  // Task, checkpoint, hops, added tokens, both sizes of the window, padding: a cell but for its
  // seed.
  using CellKey = std::tuple<std::string, int32_t, int32_t, int32_t, int32_t, int32_t, std::string>;

  const checkpoint::ModelRoot& models_;
  const v1::Limits& limits_;
  const bool digests_;
  Plan plan_;
  std::vector<OpenedCheckpoint> opened_;
  absl::flat_hash_map<std::string, int32_t> positions_;  // in the plan, by name
  std::vector<std::vector<int32_t>> checkpoints_of_task_;
  absl::flat_hash_map<CellKey, int> task_of_cell_;
  absl::flat_hash_set<std::pair<std::string, int32_t>> warned_;  // task, checkpoint
};

}  // namespace

absl::StatusOr<Plan> MakePlan(const v1::EvalJobSpec& spec, const checkpoint::ModelRoot& models,
                              const v1::Limits& limits, bool digests) {
  return Planner(spec, models, limits, digests).Make();
}

}  // namespace hopscope::jobs

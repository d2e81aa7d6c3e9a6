#include "server/jobs/capability.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hopscope::jobs {
namespace {

template <typename List, typename Value>
bool Contains(const List& list, const Value& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

std::string WhyJobDoesNotFit(const v1::WorkerDescription& worker, const store::JobRow& job,
                             const v1::EvalJobSpec& spec) {
  if (!Contains(worker.dtypes(), spec.dtype())) {
    return absl::StrCat("it does not compute in ", absl::AsciiStrToLower(absl::StripPrefix(
                                                       v1::Dtype_Name(spec.dtype()), "DTYPE_")));
  }
  if (!job.pinned_kind.empty() && worker.kind() != job.pinned_kind) {
    return absl::StrCat("it is of kind ", worker.kind(), ", the job began on kind ",
                        job.pinned_kind, " and has no mixed_workers");
  }
  return "";
}

std::string WhyTaskDoesNotFit(const v1::WorkerDescription& worker, const v1::TaskSpec& task) {
  if (!Contains(worker.tasks(), task.task())) {
    return absl::StrCat("it does not know task ", task.task());
  }
  for (const v1::ScorerSpec& scorer : task.scorers()) {
    if (!Contains(worker.scorers(), scorer.name())) {
      return absl::StrCat("it does not know scorer ", scorer.name());
    }
  }
  return "";
}

std::string WhyCheckpointDoesNotFit(const v1::WorkerDescription& worker,
                                    const store::CheckpointRow& checkpoint) {
  if (!Contains(worker.model_families(), checkpoint.family)) {
    return absl::StrCat("it does not run model family ", checkpoint.family);
  }
  if (worker.memory_bytes() > 0 && checkpoint.weight_bytes > worker.memory_bytes()) {
    return absl::StrCat("checkpoint ", checkpoint.ref.name(), " has ", checkpoint.weight_bytes,
                        " bytes of weights, its memory ", worker.memory_bytes());
  }
  return "";
}

std::string WhyCellDoesNotFit(const v1::WorkerDescription& worker, const store::JobRow& job,
                              const store::JobPlanRow& plan, const store::CellRow& cell) {
  std::string why = WhyJobDoesNotFit(worker, job, plan.spec);
  if (why.empty()) why = WhyTaskDoesNotFit(worker, plan.spec.tasks(cell.task));
  if (why.empty()) why = WhyCheckpointDoesNotFit(worker, plan.checkpoints[cell.checkpoint]);
  return why;
}

}  // namespace hopscope::jobs

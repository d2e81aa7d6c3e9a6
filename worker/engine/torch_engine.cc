#include "worker/engine/torch_engine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/checkpoint/families/family.h"
#include "common/spec/catalog.h"
#include "common/status.h"
#include "worker/engine/evaluation.h"
#include "worker/engine/host.h"
#include "worker/engine/model/cpu_kernels.h"
#include "worker/engine/model/runnable.h"
#include "worker/engine/model/torch_runtime.h"
#include "worker/engine/scorers/accuracy.h"
#include "worker/engine/scorers/moments.h"
#include "worker/engine/scorers/registry.h"
#include "worker/engine/tasks/registry.h"

namespace hopscope::engine {
namespace {

// Goes up whenever a change of the engine's code may change a result.
constexpr int kEngineVersion = 2;

// Two units at once keep every thread busy while one of them begins or ends.
constexpr int kCapacity = 2;

// Of means of heads' outputs, for ablations: those of long sequences take tens of megabytes.
constexpr int64_t kHeadMeansBytes = int64_t{128} << 20;

// Failed items that a result names.
constexpr int kItemFailures = 8;

struct ChosenDevice {
  Device device;
  std::string kind;
  DeviceDescription description;
};

absl::StatusOr<ChosenDevice> ChooseDevice(const std::string& wanted) {
  const ChosenDevice cpu{
      .kind = absl::StrCat("cpu-", CpuIsaName()),
      .description = {.name = HostProcessorName(), .memory_bytes = HostMemoryBytes()}};
  if (wanted == "cpu") return cpu;
  int index = 0;
  absl::string_view number = wanted;
  const bool numbered =
      absl::ConsumePrefix(&number, "cuda:") && absl::SimpleAtoi(number, &index) && index >= 0;
  if (wanted != "auto" && wanted != "cuda" && !numbered) {
    return common::InvalidField("DEVICE_UNKNOWN", "device", wanted, "auto, cpu, cuda or cuda:N");
  }
  const absl::Status loaded = LoadCuda(index);
  if (!loaded.ok()) {
    if (wanted == "auto") return cpu;
    return loaded;
  }
  DeviceDescription description = DescribeCuda(index);
  return ChosenDevice{.device = {.cuda = true, .index = index},
                      .kind = absl::StrCat("cuda-", description.name),
                      .description = std::move(description)};
}

// An attempt's error has one of three reasons.
absl::Status AsAttemptError(const absl::Status& status) {
  if (absl::IsCancelled(status)) return status;
  const std::string reason = common::ErrorReason(status);
  if (reason == "CHECKPOINT" || reason == "OUT_OF_MEMORY" || reason == "INTERNAL") return status;
  return common::MakeError(absl::StatusCode::kInternal, "INTERNAL", status.message());
}

}  // namespace

absl::StatusOr<std::unique_ptr<TorchEngine>> TorchEngine::Create(Options options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return common::InvalidField("THREADS_OUT_OF_RANGE", "threads", absl::StrCat(options.threads),
                                absl::StrCat("0 to ", kMaxThreads));
  }
  if (options.cache_bytes < 0) {
    return common::InvalidField("CACHE_OUT_OF_RANGE", "cache_bytes",
                                absl::StrCat(options.cache_bytes), "0 or more");
  }
  PinBlasCodePath();
  HOPSCOPE_ASSIGN_OR_RETURN(const ChosenDevice chosen, ChooseDevice(options.device));
  if (options.threads == 0) options.threads = HostThreads();
  // A CUDA device runs one pass at a time.
  if (chosen.device.cuda) options.threads = 1;
  if (options.cache_bytes == 0) options.cache_bytes = chosen.description.memory_bytes / 4;

  v1::WorkerDescription description;
  description.set_device(chosen.device.cuda ? "cuda" : "cpu");
  description.set_device_name(chosen.description.name);
  description.set_memory_bytes(chosen.description.memory_bytes);
  for (const v1::Dtype dtype :
       {v1::DTYPE_FLOAT32, v1::DTYPE_FLOAT64, v1::DTYPE_BFLOAT16, v1::DTYPE_FLOAT16}) {
    description.add_dtypes(dtype);
  }
  for (const checkpoint::Family& family : checkpoint::Families()) {
    description.add_model_families(std::string(family.model_type));
  }
  for (const Task* task : Tasks()) description.add_tasks(task->name());
  description.add_tasks(std::string(spec::kTokensTask));
  for (const std::string& scorer : ScorerNames()) description.add_scorers(scorer);
  description.set_kind(
      absl::StrCat(chosen.kind, "/torch-", TorchVersion(), "/engine-", kEngineVersion));
  description.set_capacity(kCapacity);
  description.set_threads(options.threads);
  return std::unique_ptr<TorchEngine>(
      new TorchEngine(options, chosen.device, std::move(description)));
}

TorchEngine::TorchEngine(const Options& options, Device device, v1::WorkerDescription description)
    : device_(device),
      description_(std::move(description)),
      cache_({.model_root = options.model_root, .device = device, .bytes = options.cache_bytes}),
      head_means_(kHeadMeansBytes),
      pool_(options.threads) {}

void TorchEngine::Describe(v1::WorkerDescription* description) const {
  description->MergeFrom(description_);
}

absl::StatusOr<v1::UnitResult> TorchEngine::Run(const v1::WorkUnit& unit, const CancelFlag& cancel,
                                                RunStatistics* statistics) {
  if (cancel.cancelled()) return absl::CancelledError("the unit was cancelled");
  const absl::StatusOr<UnitSequences> sequences = FindSequences(unit, cancel);
  if (!sequences.ok()) return AsAttemptError(sequences.status());
  absl::StatusOr<v1::UnitResult> result = RunUnit(unit, *sequences, cancel, statistics);
  if (result.ok()) return result;
  // After an error of its own a CUDA context does not recover. Scorers that do not fit, and the
  // like, say nothing of the device.
  if (device_.cuda && absl::IsInternal(result.status())) {
    healthy_.store(false, std::memory_order_relaxed);
  }
  return AsAttemptError(result.status());
}

absl::StatusOr<TorchEngine::UnitSequences> TorchEngine::FindSequences(
    const v1::WorkUnit& unit, const CancelFlag& cancel) const {
  UnitSequences sequences;
  if (unit.sequences().task() != spec::kTokensTask) {
    HOPSCOPE_ASSIGN_OR_RETURN(
        TaskSource source,
        TaskSource::Create(unit.sequences(), unit.first_item(), unit.item_count()));
    sequences.vocab_size = source.task().vocab_size(unit.sequences().window());
    if (unit.item_count() > 0) sequences.longest = source.tokens(0);
    sequences.source = std::make_unique<TaskSource>(std::move(source));
    return sequences;
  }
  HOPSCOPE_ASSIGN_OR_RETURN(const TokensReader::Lines lines, ReadTokens(unit, cancel));
  for (const tokens::TokensLine& line : *lines) {
    sequences.vocab_size = std::max<int64_t>(sequences.vocab_size, int64_t{line.MaxId()} + 1);
    sequences.longest = std::max(sequences.longest, static_cast<int64_t>(line.tokens.size()));
    sequences.list.push_back(SequenceOf(line));
  }
  sequences.source = std::make_unique<ListSource>(sequences.list);
  return sequences;
}

absl::StatusOr<v1::UnitResult> TorchEngine::RunUnit(const v1::WorkUnit& unit,
                                                    const UnitSequences& sequences,
                                                    const CancelFlag& cancel,
                                                    RunStatistics* statistics) {
  const int64_t items = unit.item_count();
  const v1::Dtype dtype = unit.dtype() == v1::DTYPE_UNSPECIFIED ? v1::DTYPE_FLOAT32 : unit.dtype();
  double load_seconds = 0;
  HOPSCOPE_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model,
                            cache_.Get(unit.checkpoint(), dtype, cancel, &load_seconds));
  if (statistics != nullptr) statistics->model_load_seconds += load_seconds;
  const checkpoint::Architecture& architecture = model->architecture();
  const int64_t needed = sequences.vocab_size;
  if (architecture.vocab_size < needed) {
    return common::MakeError(
        absl::StatusCode::kFailedPrecondition, "CHECKPOINT",
        absl::StrCat("checkpoint ", unit.checkpoint().name(), " has ", architecture.vocab_size,
                     " token ids, task ", unit.sequences().task(), " needs ", needed));
  }
  HOPSCOPE_RETURN_IF_ERROR(CheckLength(architecture, sequences.longest));

  ItemFailures failures(items);
  std::vector<std::unique_ptr<Scorer>> scorers;
  // Every result counts answers, whether or not they were asked for as a score.
  auto accuracy = std::make_unique<Accuracy>(items, &failures);
  const MetricTable& correct = accuracy->tables()[0];
  scorers.push_back(std::move(accuracy));
  for (int i = 0; i < unit.scorers_size(); ++i) {
    if (unit.scorers(i).name() == scorers[0]->name()) continue;
    HOPSCOPE_ASSIGN_OR_RETURN(
        std::unique_ptr<Scorer> scorer,
        MakeScorer(absl::StrCat("scorers[", i, "]"), unit.scorers(i), architecture, items,
                   &failures,
                   {.queries = sequences.source->queries(), .window = unit.sequences().window()}));
    if (scorer->NeedsHeadMeans()) {
      HOPSCOPE_ASSIGN_OR_RETURN(
          std::shared_ptr<const HeadMeans> means,
          head_means_.Get(unit.checkpoint().digest(), *model, unit.sequences(), cancel, &pool_));
      scorer->SetHeadMeans(std::move(means));
    }
    scorers.push_back(std::move(scorer));
  }
  Evaluation evaluation{.model = model.get(), .source = sequences.source.get(), .cancel = &cancel};
  for (const auto& scorer : scorers) evaluation.scorers.push_back(scorer.get());
  HOPSCOPE_RETURN_IF_ERROR(Evaluate(evaluation, &pool_, statistics));

  v1::UnitResult result;
  result.set_kind(
      absl::StrCat(description_.kind(), "/",
                   absl::AsciiStrToLower(absl::StripPrefix(v1::Dtype_Name(dtype), "DTYPE_"))));
  for (int64_t item = 0; item < items; ++item) {
    if (!failures.failed(item)) {
      result.set_items(result.items() + 1);
      const double value = *correct.item(item);
      if (value == 1) result.set_correct(result.correct() + 1);
      if (std::isnan(value)) result.set_items_unlabelled(result.items_unlabelled() + 1);
      continue;
    }
    result.set_items_failed(result.items_failed() + 1);
    if (result.item_failures_size() < kItemFailures) {
      v1::ItemFailure* failure = result.add_item_failures();
      failure->set_item(unit.first_item() + item);
      failure->mutable_failure()->set_reason("NUMERIC");
      failure->mutable_failure()->set_message(failures.message(item));
    }
  }
  for (size_t i = 1; i < scorers.size(); ++i) {
    for (const MetricTable& table : scorers[i]->tables()) {
      v1::ScoreMoments* moments = result.add_scores();
      *moments = MomentsOf(scorers[i]->name(), table, failures);
      moments->mutable_flags()->Add(scorers[i]->flags().begin(), scorers[i]->flags().end());
    }
  }
  return result;
}

}  // namespace hopscope::engine

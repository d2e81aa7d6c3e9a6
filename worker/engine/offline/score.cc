#include "worker/engine/offline/score.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/digest.h"
#include "common/output_file.h"
#include "common/spec/reasons.h"
#include "common/status.h"
#include "nlohmann/json.hpp"
#include "worker/engine/compute_pool.h"
#include "worker/engine/evaluation.h"
#include "worker/engine/host.h"
#include "worker/engine/model/runnable.h"
#include "worker/engine/model/torch_runtime.h"
#include "worker/engine/offline/options.h"
#include "worker/engine/offline/tokens_file.h"
#include "worker/engine/scorers/accuracy.h"
#include "worker/engine/scorers/moments.h"
#include "worker/engine/scorers/registry.h"
#include "worker/engine/sequence_source.h"

namespace hopscope::engine {
namespace {

using nlohmann::json;

constexpr int kMaxThreads = 1024;

struct Axis {
  const char* name;
  int64_t size;
};

std::vector<Axis> AxesOf(const MetricTable& table) {
  std::vector<Axis> axes;
  for (const Axis axis : {Axis{"steps", table.axes().steps}, Axis{"layers", table.axes().layers},
                          Axis{"heads", table.axes().heads}, Axis{"planes", table.axes().planes}}) {
    if (axis.size > 0) axes.push_back(axis);
  }
  return axes;
}

// Row-major numbers as nested lists; a single number without axes. What is not finite becomes null.
json Nested(const double* values, const std::vector<Axis>& axes, size_t depth = 0) {
  if (depth == axes.size()) return std::isfinite(*values) ? json(*values) : json(nullptr);
  int64_t step = 1;
  for (size_t i = depth + 1; i < axes.size(); ++i) step *= axes[i].size;
  json list = json::array();
  for (int64_t i = 0; i < axes[depth].size; ++i) {
    list.push_back(Nested(values + i * step, axes, depth + 1));
  }
  return list;
}

json MetricToJson(const Scorer& scorer, const MetricTable& table, const ItemFailures& failures) {
  const std::vector<Axis> axes = AxesOf(table);
  const std::vector<double> none(table.cells(), std::nan(""));
  json per_item = json::array();
  for (int64_t item = 0; item < table.items(); ++item) {
    per_item.push_back(Nested(failures.failed(item) ? none.data() : table.item(item), axes));
  }
  const v1::ScoreMoments moments = MomentsOf(scorer.name(), table, failures);
  std::vector<double> means(moments.mean().begin(), moments.mean().end());
  for (size_t cell = 0; cell < means.size(); ++cell) {
    if (moments.count(static_cast<int>(cell)) == 0) means[cell] = std::nan("");
  }
  return {{"per_item", std::move(per_item)}, {"mean", Nested(means.data(), axes)}};
}

json ScorerToJson(const Scorer& scorer, const ItemFailures& failures) {
  const std::vector<MetricTable>& tables = scorer.tables();
  int64_t metrics = 0;
  for (size_t i = 0; i < tables.size(); ++i) {
    metrics += i == 0 || tables[i].metric() != tables[i - 1].metric();
  }
  const size_t sets = tables.size() / metrics;
  json result = json::object();
  for (size_t i = 0; i < tables.size(); ++i) {
    json metric = MetricToJson(scorer, tables[i], failures);
    if (sets == 1) {
      result[tables[i].metric()] = std::move(metric);
      continue;
    }
    if (tables[i].params().fields().count("taus") == 0) {
      json& set = result["results"][i % sets];
      for (const auto& [name, value] : tables[i].params().fields()) {
        set["params"][name] = value.string_value();
      }
      set[tables[i].metric()] = std::move(metric);
      continue;
    }
    json& set = result["taus"][i % sets];
    set["tau"] = tables[i].params().fields().at("taus").number_value();
    set[tables[i].metric()] = std::move(metric);
  }
  if (tables[0].axes().steps > 0 || tables[0].axes().planes > 0) {
    for (const Axis& axis : AxesOf(tables[0])) result["axes"].push_back(axis.name);
  }
  return result;
}

}  // namespace

absl::Status RunScore(const ScoreOptions& options) {
  HOPSCOPE_ASSIGN_OR_RETURN(const std::vector<v1::ScorerSpec> specs,
                            ParseScorers(options.scorers, options.taus, options.params));
  HOPSCOPE_ASSIGN_OR_RETURN(const v1::Dtype dtype, ParseDtype(options.dtype));
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return common::InvalidField(spec::kOutOfRange, "--threads", absl::StrCat(options.threads),
                                absl::StrCat("0 to ", kMaxThreads));
  }
  HOPSCOPE_RETURN_IF_ERROR(CheckOutput(options.tokens, options.output));
  HOPSCOPE_ASSIGN_OR_RETURN(const checkpoint::Checkpoint checkpoint,
                            OpenCheckpoint(options.checkpoint));
  const checkpoint::Architecture& architecture = checkpoint.architecture();
  HOPSCOPE_RETURN_IF_ERROR(CheckRunnable(architecture));
  checkpoint::DigestCache digests;
  HOPSCOPE_ASSIGN_OR_RETURN(const std::string digest, digests.Digest(options.checkpoint));
  HOPSCOPE_ASSIGN_OR_RETURN(
      const std::vector<TokensLine> lines,
      ReadTokensFile(options.tokens, {.vocab_size = architecture.vocab_size}));

  const bool needs_labels = std::any_of(specs.begin(), specs.end(), [](const auto& spec) {
    return spec.name() == "accuracy" || spec.name() == "loss" || spec.name() == "ablation";
  });
  std::vector<Sequence> sequences;
  for (const TokensLine& line : lines) {
    const std::string where = absl::StrCat(options.tokens, ":", line.number);
    HOPSCOPE_RETURN_IF_ERROR(common::Annotate(
        CheckLength(architecture, static_cast<int64_t>(line.tokens.size())), where));
    if (needs_labels && !line.label.has_value()) {
      return common::MakeError(
          absl::StatusCode::kInvalidArgument, "TOKENS_FILE_INVALID",
          absl::StrCat(where, ": scorers accuracy, loss and ablation need a \"label\""));
    }
    Sequence sequence;
    sequence.tokens = line.tokens;
    sequence.label = line.label.value_or(-1);
    sequence.queries = line.queries;
    sequence.blocks = line.blocks;
    sequence.needle = line.needle;
    sequences.push_back(std::move(sequence));
  }

  PinBlasCodePath();
  HOPSCOPE_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model,
                            Model::Load(checkpoint, dtype));
  const int64_t items = static_cast<int64_t>(sequences.size());
  ItemFailures failures(items);
  // Logits are looked at even where accuracy is not asked for: an item with a NaN there has failed.
  Accuracy watch(items, &failures);
  const ListSource source(sequences);
  Evaluation evaluation{
      .model = model.get(), .source = &source, .scorers = {&watch}, .cancel = options.cancel};
  std::vector<std::unique_ptr<Scorer>> scorers;
  for (const v1::ScorerSpec& spec : specs) {
    HOPSCOPE_ASSIGN_OR_RETURN(
        std::unique_ptr<Scorer> scorer,
        MakeScorer("--scorers " + spec.name(), spec, architecture, items, &failures));
    if (scorer->NeedsHeadMeans()) {
      return common::InvalidField(
          spec::kUnsupported, "--param ablation.kinds", "mean",
          "zero, positional_only or symbolic_only: means are those of a task's own validation "
          "sequences, and a tokens file has none");
    }
    evaluation.scorers.push_back(scorer.get());
    scorers.push_back(std::move(scorer));
  }
  {
    ComputePool pool(options.threads > 0 ? options.threads : HostThreads());
    HOPSCOPE_RETURN_IF_ERROR(Evaluate(evaluation, &pool, /*statistics=*/nullptr));
  }

  json report = {{"checkpoint", options.checkpoint}, {"digest", digest},
                 {"dtype", options.dtype},           {"items", items},
                 {"items_failed", json::array()},    {"scorers", json::object()}};
  for (int64_t item = 0; item < items; ++item) {
    if (!failures.failed(item)) continue;
    report["items_failed"].push_back(
        {{"item", item}, {"reason", "NUMERIC"}, {"message", failures.message(item)}});
  }
  for (const auto& scorer : scorers) {
    report["scorers"][scorer->name()] = ScorerToJson(*scorer, failures);
  }
  HOPSCOPE_ASSIGN_OR_RETURN(common::OutputFile file, common::OutputFile::Create(options.output));
  HOPSCOPE_RETURN_IF_ERROR(
      file.Write(report.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"));
  return file.Commit();
}

}  // namespace hopscope::engine

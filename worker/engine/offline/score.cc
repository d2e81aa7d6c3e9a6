#include "worker/engine/offline/score.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/digest.h"
#include "common/head_label.h"
#include "common/output_file.h"
#include "common/scores/weighted_id.h"
#include "common/spec/reasons.h"
#include "common/spec/scorer_lengths.h"
#include "common/status.h"
#include "common/tokens/tokens_file.h"
#include "nlohmann/json.hpp"
#include "worker/engine/compute_pool.h"
#include "worker/engine/evaluation.h"
#include "worker/engine/host.h"
#include "worker/engine/model/runnable.h"
#include "worker/engine/model/torch_runtime.h"
#include "worker/engine/offline/options.h"
#include "worker/engine/scorers/accuracy.h"
#include "worker/engine/scorers/moments.h"
#include "worker/engine/scorers/registry.h"
#include "worker/engine/sequence_source.h"

namespace hopscope::engine {
namespace {

using nlohmann::json;

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

// value(0), value(1), ... in row-major order as nested lists; a single value without axes.
template <typename Value>
json Nested(const std::vector<Axis>& axes, Value value, size_t depth = 0, int64_t first = 0) {
  if (depth == axes.size()) return value(first);
  int64_t step = 1;
  for (size_t i = depth + 1; i < axes.size(); ++i) step *= axes[i].size;
  json list = json::array();
  for (int64_t i = 0; i < axes[depth].size; ++i) {
    list.push_back(Nested(axes, value, depth + 1, first + i * step));
  }
  return list;
}

// Numbers likewise. What is not finite becomes null.
json Nested(const double* values, const std::vector<Axis>& axes) {
  return Nested(axes, [values](int64_t at) {
    return std::isfinite(values[at]) ? json(values[at]) : json(nullptr);
  });
}

// Numbers of a metric's cells; NaN where no item has a value.
std::vector<double> CellsOf(const v1::ScoreMoments& moments,
                            const google::protobuf::RepeatedField<double>& values) {
  std::vector<double> cells(values.begin(), values.end());
  for (size_t cell = 0; cell < cells.size(); ++cell) {
    if (moments.count(static_cast<int>(cell)) == 0) cells[cell] = std::nan("");
  }
  return cells;
}

json MetricToJson(const Scorer& scorer, const MetricTable& table, const ItemFailures& failures) {
  const std::vector<Axis> axes = AxesOf(table);
  const std::vector<double> none(table.cells(), std::nan(""));
  json per_item = json::array();
  for (int64_t item = 0; item < table.items(); ++item) {
    per_item.push_back(Nested(failures.failed(item) ? none.data() : table.item(item), axes));
  }
  const v1::ScoreMoments moments = MomentsOf(scorer.name(), table, failures);
  const std::vector<double> means = CellsOf(moments, moments.mean());
  json metric = {{"per_item", std::move(per_item)}, {"mean", Nested(means.data(), axes)}};
  if (table.extremes()) {
    metric["min"] = Nested(CellsOf(moments, moments.min()).data(), axes);
    metric["max"] = Nested(CellsOf(moments, moments.max()).data(), axes);
  }
  if (scorer.name() == "frequency_use" && table.metric() == "max_logit") {
    const int64_t planes = table.axes().planes;
    std::vector<double> ids;
    for (int64_t cell = 0; cell < table.cells(); cell += planes) {
      ids.push_back(scores::WeightedId(means.data() + cell, planes));
    }
    metric["weighted_id"] =
        Nested(ids.data(), {{"layers", table.axes().layers}, {"heads", table.axes().heads}});
  }
  return metric;
}

// Labels at one gamma of the set-th set of parameters of `scorer`; null where a head has none.
json LabelsToJson(const Scorer& scorer, size_t set, size_t sets, const ItemFailures& failures,
                  double gamma) {
  std::map<std::string, std::vector<double>> means;
  const std::vector<MetricTable>& tables = scorer.tables();
  for (size_t i = set; i < tables.size(); i += sets) {
    const v1::ScoreMoments moments = MomentsOf(scorer.name(), tables[i], failures);
    means[tables[i].metric()] = CellsOf(moments, moments.mean());
  }
  const auto known = [&means](const char* metric, int64_t at) -> std::optional<double> {
    const auto found = means.find(metric);
    if (found == means.end() || std::isnan(found->second[at])) return std::nullopt;
    return found->second[at];
  };
  return Nested(AxesOf(tables[set]), [&](int64_t at) -> json {
    const std::optional<double> positional = known("positional", at);
    const std::optional<double> symbolic = known("symbolic", at);
    if (!positional.has_value() || !symbolic.has_value()) return nullptr;
    return std::string(common::LabelName(common::LabelOf({.positional = *positional,
                                                          .symbolic = *symbolic,
                                                          .swapped_mass = known("swapped_mass", at),
                                                          .contrast = known("contrast", at)},
                                                         gamma)));
  });
}

// Whether the scorer's heads can be labelled at all.
bool HasLabels(const Scorer& scorer) {
  const auto has = [&scorer](const char* metric) {
    return std::any_of(scorer.tables().begin(), scorer.tables().end(),
                       [metric](const MetricTable& table) { return table.metric() == metric; });
  };
  const std::vector<std::string>& flags = scorer.flags();
  return scorer.name() == "positional_symbolic" && has("positional") && has("symbolic") &&
         std::find(flags.begin(), flags.end(), common::kPositionInContent) == flags.end();
}

// How one scorer was asked for and used.
struct ScorerRun {
  std::unique_ptr<Scorer> scorer;
  v1::ScorerSpec spec;                     // with what the length decides, where all lines agree
  std::vector<std::string> mode_per_item;  // where they do not
};

json ParamsToJson(const google::protobuf::Struct& params, bool with_taus) {
  json result = json::object();
  for (const auto& [name, value] : params.fields()) {
    if (name == "taus" && !with_taus) continue;
    if (value.has_string_value()) result[name] = value.string_value();
    if (value.has_number_value()) result[name] = value.number_value();
    if (value.has_bool_value()) result[name] = value.bool_value();
  }
  return result;
}

json ScorerToJson(const ScorerRun& run, const ItemFailures& failures,
                  const std::vector<double>& gammas) {
  const Scorer& scorer = *run.scorer;
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
  if (HasLabels(scorer)) {
    for (size_t set = 0; set < sets; ++set) {
      json& at = sets == 1 ? result : result["taus"][set];
      for (const double gamma : gammas) {
        at["labels"].push_back(
            {{"gamma", gamma}, {"heads", LabelsToJson(scorer, set, sets, failures, gamma)}});
      }
    }
  }
  if (!tables[0].params().fields().empty()) {
    result["params"] = ParamsToJson(tables[0].params(), /*with_taus=*/sets == 1);
    result["flags"] = scorer.flags();
  }
  if (!run.mode_per_item.empty()) result["mode_per_item"] = run.mode_per_item;
  if (tables[0].axes().steps > 0 || tables[0].axes().planes > 0) {
    for (const Axis& axis : AxesOf(tables[0])) result["axes"].push_back(axis.name);
  }
  return result;
}

std::string ModeOf(const v1::ScorerSpec& scorer) {
  const auto found = scorer.params().fields().find("mode");
  return found == scorer.params().fields().end() ? "" : found->second.string_value();
}

// Whether the scorer looks at slots that a line must name.
bool NeedsQueries(const v1::ScorerSpec& scorer) {
  const auto found = scorer.params().fields().find("queries");
  return found != scorer.params().fields().end() && found->second.string_value() == "hops";
}

// What the lengths of the sequences make of a scorer.
absl::StatusOr<ScorerRun> AtLengths(const v1::ScorerSpec& scorer,
                                    const std::vector<Sequence>& sequences) {
  ScorerRun run{.spec = scorer};
  std::set<std::string> modes;
  for (const Sequence& sequence : sequences) {
    const int64_t tokens = static_cast<int64_t>(sequence.tokens.size());
    HOPSCOPE_RETURN_IF_ERROR(spec::CheckScorerLength("--scorers " + scorer.name(), scorer, tokens));
    run.spec = spec::ScorerAtLength(scorer, tokens);
    modes.insert(run.mode_per_item.emplace_back(ModeOf(run.spec)));
  }
  if (modes.size() > 1) {
    run.spec = scorer;
  } else {
    run.mode_per_item.clear();
  }
  return run;
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
  std::vector<double> gammas = options.gammas;
  if (gammas.empty()) gammas.push_back(common::kDefaultGamma);
  for (const double gamma : gammas) {
    if (gamma >= 0 && gamma <= 0.5) continue;
    return common::InvalidField(spec::kOutOfRange, "--gamma", absl::StrCat(gamma), "0 to 0.5");
  }
  HOPSCOPE_RETURN_IF_ERROR(CheckOutput(options.tokens, options.output));
  HOPSCOPE_ASSIGN_OR_RETURN(const checkpoint::Checkpoint checkpoint,
                            OpenCheckpoint(options.checkpoint));
  const checkpoint::Architecture& architecture = checkpoint.architecture();
  HOPSCOPE_RETURN_IF_ERROR(CheckRunnable(architecture));
  checkpoint::DigestCache digests;
  HOPSCOPE_ASSIGN_OR_RETURN(const std::string digest, digests.Digest(options.checkpoint));
  HOPSCOPE_ASSIGN_OR_RETURN(
      const std::vector<tokens::TokensLine> lines,
      tokens::ReadTokensFile(options.tokens, {.vocab_size = architecture.vocab_size}));

  const bool needs_labels = std::any_of(specs.begin(), specs.end(), [](const auto& spec) {
    return spec.name() == "accuracy" || spec.name() == "loss" || spec.name() == "ablation";
  });
  std::vector<Sequence> sequences;
  for (const tokens::TokensLine& line : lines) {
    const std::string where = absl::StrCat(options.tokens, ":", line.number);
    HOPSCOPE_RETURN_IF_ERROR(common::Annotate(
        CheckLength(architecture, static_cast<int64_t>(line.tokens.size())), where));
    if (needs_labels && !line.label.has_value()) {
      return common::MakeError(
          absl::StatusCode::kInvalidArgument, "TOKENS_FILE_INVALID",
          absl::StrCat(where, ": scorers accuracy, loss and ablation need a \"label\""));
    }
    for (const v1::ScorerSpec& scorer : specs) {
      if (!NeedsQueries(scorer) || !line.queries.empty()) continue;
      return common::MakeError(
          absl::StatusCode::kInvalidArgument, "TOKENS_FILE_INVALID",
          absl::StrCat(where, ": ", scorer.name(), ".queries=hops needs \"queries\""));
    }
    sequences.push_back(SequenceOf(line));
  }

  std::vector<ScorerRun> runs;
  for (const v1::ScorerSpec& spec : specs) {
    HOPSCOPE_ASSIGN_OR_RETURN(ScorerRun run, AtLengths(spec, sequences));
    runs.push_back(std::move(run));
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
  for (ScorerRun& run : runs) {
    HOPSCOPE_ASSIGN_OR_RETURN(
        run.scorer, MakeScorer("--scorers " + run.spec.name(), run.spec, architecture, items,
                               &failures, {.queries = source.queries()}));
    if (run.scorer->NeedsHeadMeans()) {
      return common::InvalidField(
          spec::kUnsupported, "--param ablation.kinds", "mean",
          "zero, positional_only or symbolic_only: means are those of a task's own validation "
          "sequences, and a tokens file has none");
    }
    evaluation.scorers.push_back(run.scorer.get());
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
  for (const ScorerRun& run : runs) {
    report["scorers"][run.spec.name()] = ScorerToJson(run, failures, gammas);
  }
  HOPSCOPE_ASSIGN_OR_RETURN(common::OutputFile file, common::OutputFile::Create(options.output));
  HOPSCOPE_RETURN_IF_ERROR(
      file.Write(report.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"));
  return file.Commit();
}

}  // namespace hopscope::engine

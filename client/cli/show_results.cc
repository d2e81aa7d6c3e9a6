#include "client/cli/show_results.h"

#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/ablation_table.h"
#include "client/cli/accuracy_table.h"
#include "client/cli/layer_table.h"
#include "client/cli/metric_table.h"
#include "client/cli/number_text.h"
#include "client/job_state.h"
#include "common/status.h"
#include "common/version.h"

namespace hopscope::cli {
namespace {

void PrintTables(const std::vector<std::string>& tables, int max_tables, absl::string_view file,
                 Console& console) {
  const size_t shown =
      max_tables == 0 ? tables.size() : std::min<size_t>(tables.size(), max_tables);
  for (size_t i = 0; i < shown; ++i) console.Print(absl::StrCat("\n", tables[i]));
  if (shown < tables.size()) {
    console.Print(absl::StrCat(
        "\n... and ", Counted(static_cast<int64_t>(tables.size() - shown), "more table"),
        ": --max_tables 0 shows all, ", file, " of --output has all numbers\n"));
  }
}

std::string Summary(const v1::EvalJob& job) {
  const v1::JobTotals& totals = job.totals();
  std::string text =
      absl::StrCat(job.name(), " ", client::StateName(job.state()), ": ",
                   Count(totals.cells_completed()), " of ", Counted(totals.cells(), "cell"), ", ",
                   Counted(totals.items_completed(), "sequence"), "\n");
  if (totals.cells_failed() > 0)
    absl::StrAppend(&text, "  ", Counted(totals.cells_failed(), "cell"), " failed\n");
  if (job.worker_kinds_size() > 1) {
    absl::StrAppend(&text, "  computed by workers of several kinds:\n");
    for (const std::string& kind : job.worker_kinds()) absl::StrAppend(&text, "    ", kind, "\n");
  }
  return text;
}

}  // namespace

void ResultsOptions::AddTo(CLI::App& app) {
  app.add_option("--output", output, "Save results.json, cells.csv and heads.csv in this folder")
      ->type_name("DIR");
  app.add_option(
         "--gamma", gammas,
         "Threshold of the labels pos, sym, dif and mix (default: 0.1);\nmay be given several "
         "times: a label for each")
      ->type_name("X")
      ->allow_extra_args(false)
      ->check(CLI::Range(0.0, 0.5));
  app.add_flag("--per_head", per_head, "Show a row for each head");
  app.add_flag("--by_hops", by_hops, "Show scores for each hop count instead of pooling them");
  app.add_option("--max_tables", max_tables,
                 "Show at most so many tables of each kind; 0: all (default: 12)")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
}

absl::Status ShowResults(const client::Client& client, const std::string& name,
                         const ResultsOptions& options, bool quiet,
                         std::unique_ptr<ResultsWriter> writer, Session& session) {
  std::ostringstream json;
  std::unique_ptr<ResultsWriter> json_writer;
  if (session.json() && !quiet) json_writer = WriteResultsTo(&json);
  const bool tables = !session.json() && !quiet;

  HOPSCOPE_ASSIGN_OR_RETURN(const v1::EvalJob job, client.GetEvalJob(name));
  std::vector<v1::CellResult> cells;
  std::vector<v1::HeadScores> scores;
  HOPSCOPE_RETURN_IF_ERROR(
      client.ReadEvalResults(name, [&](const v1::ListEvalResultsResponse& page) {
        if (writer != nullptr) HOPSCOPE_RETURN_IF_ERROR(writer->Add(page));
        if (json_writer != nullptr) HOPSCOPE_RETURN_IF_ERROR(json_writer->Add(page));
        if (tables) {
          cells.insert(cells.end(), page.cells().begin(), page.cells().end());
          for (const v1::HeadScores& heads : page.heads()) {
            if (IsLayerScore(heads) || IsAblationDrop(heads) || IsMetricScore(heads)) {
              scores.push_back(heads);
            }
          }
        }
        return absl::OkStatus();
      }));

  if (writer != nullptr || json_writer != nullptr) {
    ResultsHeader header = {job, std::string(common::VersionString()), ""};
    // A server that cannot say its version does not spoil the results.
    if (const auto capabilities = client.GetCapabilities(); capabilities.ok()) {
      header.server_version = capabilities->version();
    }
    if (writer != nullptr) HOPSCOPE_RETURN_IF_ERROR(writer->Finish(header));
    if (json_writer != nullptr) {
      HOPSCOPE_RETURN_IF_ERROR(json_writer->Finish(header));
      session.console().Print(json.str());
    }
  }
  if (tables) {
    const size_t width = session.table_width();
    session.console().Print(Summary(job));
    PrintTables(AccuracyTables(cells, width), options.max_tables, "cells.csv", session.console());
    const LayerTableOptions table_options = {.gammas = options.gammas,
                                             .per_head = options.per_head,
                                             .by_hops = options.by_hops,
                                             .width = width};
    PrintTables(LayerTables(scores, table_options), options.max_tables, "heads.csv",
                session.console());
    PrintTables(MetricTables(scores, table_options), options.max_tables, "heads.csv",
                session.console());
    PrintTables(AblationTables(scores, width), options.max_tables, "heads.csv", session.console());
  }
  if (writer != nullptr) {
    session.console().Message(
        absl::StrCat("saved results.json, cells.csv and heads.csv in ", options.output));
  }
  return absl::OkStatus();
}

}  // namespace hopscope::cli

// Reads a job's results, shows them as tables and saves them.
#ifndef HOPSCOPE_CLIENT_CLI_SHOW_RESULTS_H_
#define HOPSCOPE_CLIENT_CLI_SHOW_RESULTS_H_

#include <memory>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "client/cli/results_writer.h"
#include "client/cli/session.h"
#include "client/client.h"
#include "common/head_label.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::cli {

struct ResultsOptions {
  // Folder to save to; empty: none.
  std::string output;
  std::vector<double> gammas = {common::kDefaultGamma};
  bool per_head = false;
  bool by_hops = false;
  // Tables of each kind; 0: all.
  int max_tables = 12;

  void AddTo(CLI::App& app);
};

// Shows the results of a job as it is now: tables, or with --json one value, unless `quiet`.
// `writer` may be null.
absl::Status ShowResults(const client::Client& client, const std::string& job,
                         const ResultsOptions& options, bool quiet,
                         std::unique_ptr<ResultsWriter> writer, Session& session);

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_SHOW_RESULTS_H_

// --local and what goes with it.
#ifndef HOPSCOPE_CLIENT_CLI_LOCAL_OPTIONS_H_
#define HOPSCOPE_CLIENT_CLI_LOCAL_OPTIONS_H_

#include <memory>
#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "client/cli/environment.h"
#include "client/cli/local_cluster.h"
#include "client/cli/session.h"

namespace hopscope::cli {

struct LocalOptions {
  bool local = false;
  std::string model_root;
  int workers = 1;
  int threads = 0;
  std::string device = "auto";

  // `with_workers`: also the options on workers.
  void AddTo(CLI::App& app, bool with_workers);
};

// Starts a cluster with so many workers, and makes the session use it.
absl::StatusOr<std::unique_ptr<LocalCluster>> StartLocal(const Environment& environment,
                                                         const LocalOptions& options, int workers,
                                                         Session& session);

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_LOCAL_OPTIONS_H_

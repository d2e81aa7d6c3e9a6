// All that commands need from the world around them; main.cc fills it with the real things, tests
// with others.
#ifndef HOPSCOPE_CLIENT_CLI_ENVIRONMENT_H_
#define HOPSCOPE_CLIENT_CLI_ENVIRONMENT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/console.h"
#include "client/cli/interrupts.h"
#include "client/cli/local_cluster.h"
#include "client/connect.h"
#include "client/connection.h"
#include "common/clock.h"

namespace hopscope::cli {

// Pointers must outlive the commands.
struct Environment {
  ConsoleOptions console;
  // errno of the first write to console.out that failed; 0, or an empty function: not known.
  std::function<int()> out_error;
  // Columns of standard output; empty, or 0: it is no terminal.
  std::function<int()> out_columns;
  // The value of a variable; empty where it is not set.
  std::function<std::string(const std::string&)> getenv;
  const common::Clock* clock = common::Clock::Real();
  Interrupts* interrupts = nullptr;
  std::function<absl::StatusOr<std::unique_ptr<client::Connection>>(client::ConnectOptions)>
      connect;
  std::function<absl::StatusOr<std::unique_ptr<LocalCluster>>(LocalClusterOptions)>
      start_local_cluster;
};

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_ENVIRONMENT_H_

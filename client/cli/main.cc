// hopscope: the command line. Only what is real is made here; app.cc does the rest.
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "client/cli/app.h"
#include "client/cli/child_process.h"
#include "client/cli/environment.h"
#include "client/cli/file_output.h"
#include "client/cli/interrupts.h"
#include "client/cli/local_cluster.h"
#include "client/connect.h"
#include "common/logging.h"
#include "common/rpc/protobuf_log.h"

namespace {

std::string Variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

// Columns of the terminal behind a descriptor; 0 where there is none.
int Columns(int descriptor) {
  winsize size{};
  if (isatty(descriptor) == 0 || ioctl(descriptor, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == hopscope::cli::kExecWithParentCommand) {
    return hopscope::cli::ExecWithParent({arguments.begin() + 1, arguments.end()});
  }
  // A reader that goes away is noticed by the write.
  signal(SIGPIPE, SIG_IGN);
  // What goes wrong is reported by the commands; the log is for what libraries have to say.
  hopscope::common::SetUpLogging({.level = spdlog::level::warn});
  hopscope::common::RouteProtobufLog();
  // First of all threads.
  const std::unique_ptr<hopscope::cli::Interrupts> interrupts =
      hopscope::cli::MakeSignalInterrupts();

  const bool terminal = isatty(STDERR_FILENO) != 0 && Variable("TERM") != "dumb";
  hopscope::cli::FileOutput output(STDOUT_FILENO);
  std::ostream out(&output);
  hopscope::cli::Environment environment;
  environment.console.out = &out;
  environment.out_error = [&output] { return output.error(); };
  environment.console.err = &std::cerr;
  environment.console.err_is_terminal = terminal;
  environment.console.color = terminal && Variable("NO_COLOR").empty();
  environment.console.err_columns = [] { return Columns(STDERR_FILENO); };
  environment.out_columns = [] {
    int columns = Columns(STDOUT_FILENO);
    // For a reader in between, such as tee, who knows how wide the terminal is.
    if (columns == 0 && !absl::SimpleAtoi(Variable("COLUMNS"), &columns)) columns = 0;
    return std::max(columns, 0);
  };
  environment.getenv = Variable;
  environment.interrupts = interrupts.get();
  environment.connect = [](hopscope::client::ConnectOptions options) {
    return hopscope::client::Connect(std::move(options));
  };
  environment.start_local_cluster = [](hopscope::cli::LocalClusterOptions options) {
    return hopscope::cli::StartLocalCluster(std::move(options));
  };
  return hopscope::cli::RunApp(arguments, environment);
}

// One command of `hopscope`.
#ifndef HOPSCOPE_CLIENT_CLI_COMMAND_H_
#define HOPSCOPE_CLIENT_CLI_COMMAND_H_

#include <memory>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "client/cli/environment.h"

namespace hopscope::cli {

// Used for one run.
class Command {
 public:
  virtual ~Command() = default;

  virtual std::string name() const = 0;
  // One line, for the list of commands.
  virtual std::string summary() const = 0;
  // Lines of a shell, each with its end; what --help begins with.
  virtual std::string examples() const = 0;
  // What --help ends with; may be empty.
  virtual std::string notes() const { return ""; }
  // Whether it was asked for JSON; valid once the options are parsed, or as far as they were.
  virtual bool json() const = 0;

  // Declares its options, which point into this object.
  virtual void AddOptions(CLI::App& app) = 0;
  // Returns an ExitCode.
  virtual int Run(const Environment& environment) = 0;
};

// Each in a file of its own, or of its group.
std::unique_ptr<Command> MakeRunCommand();
std::unique_ptr<Command> MakeValidateCommand();
std::unique_ptr<Command> MakeSubmitCommand();
std::unique_ptr<Command> MakeWatchCommand();
std::unique_ptr<Command> MakeGetCommand();
std::unique_ptr<Command> MakeListCommand();
std::unique_ptr<Command> MakeCancelCommand();
std::unique_ptr<Command> MakeResultsCommand();
std::unique_ptr<Command> MakeCapabilitiesCommand();

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_COMMAND_H_

#include "client/cli/app.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/command.h"
#include "client/cli/error_report.h"
#include "client/cli/exit_codes.h"
#include "client/nearest_name.h"
#include "common/command_line.h"
#include "common/status.h"
#include "common/utf8.h"
#include "common/version.h"

namespace hopscope::cli {
namespace {

constexpr char kExamples[] =
    "hopscope run sweep.yaml --local --model_root checkpoints --output results\n"
    "hopscope validate sweep.yaml --local --model_root checkpoints\n"
    "hopscope submit sweep.yaml --server 127.0.0.1:7070\n"
    "hopscope list --filter state=RUNNING\n"
    "hopscope results jobs/3f2b8c1e --output results\n";

// CLI11's help with examples in front.
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::map<std::string, std::string> examples)
      : examples_(std::move(examples)) {
    column_width(34);
  }

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    const auto examples = examples_.find(app->get_name());
    if (mode == CLI::AppFormatMode::Sub || examples == examples_.end()) {
      return CLI::Formatter::make_help(app, name, mode);
    }
    std::string text = "Examples:\n";
    for (absl::string_view line : absl::StrSplit(examples->second, '\n', absl::SkipEmpty())) {
      absl::StrAppend(&text, "  ", line, "\n");
    }
    return absl::StrCat(text, "\n", CLI::Formatter::make_help(app, name, mode));
  }

  // The kind of value alone: what is allowed and needed is in the descriptions.
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0 || option->get_positional()) return "";
    const std::string type = option->get_type_name();
    return absl::StrCat(" ", type.substr(0, type.find(':')));
  }

 private:
  // By the name of the app.
  const std::map<std::string, std::string> examples_;
};

std::vector<std::unique_ptr<Command>> MakeCommands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(MakeRunCommand());
  commands.push_back(MakeValidateCommand());
  commands.push_back(MakeSubmitCommand());
  commands.push_back(MakeWatchCommand());
  commands.push_back(MakeGetCommand());
  commands.push_back(MakeListCommand());
  commands.push_back(MakeCancelCommand());
  commands.push_back(MakeResultsCommand());
  commands.push_back(MakeCapabilitiesCommand());
  return commands;
}

int UsageError(const std::string& message, const std::string& command, bool json,
               const Environment& environment) {
  Console console(environment.console);
  const absl::Status status = common::MakeError(
      absl::StatusCode::kInvalidArgument, "BAD_COMMAND_LINE",
      absl::StrCat(message, "; see: hopscope", command.empty() ? "" : " ", command, " --help"));
  return ReportError(status, {.json = json}, console);
}

// What becomes of an exit code where standard output could not be written to its end. That a reader
// such as `head` had enough is no error, and is not told; everything else is.
int CheckOutput(int code, const Environment& environment) {
  environment.console.out->flush();
  if (environment.console.out->good()) return code;
  const int cause = environment.out_error ? environment.out_error() : 0;
  if (cause == EPIPE) return code == kExitOk ? kExitNoReader : code;
  Console(environment.console)
      .Message(absl::StrCat("error: cannot write standard output",
                            cause == 0 ? "" : absl::StrCat(": ", std::strerror(cause))),
               Console::Tone::kError);
  return code == kExitOk || code == kExitNoReader ? kExitError : code;
}

int RunCommandLine(const std::vector<std::string>& arguments, const Environment& environment) {
  // Protobuf carries text alone, and what the command line says ends up in a message.
  for (const std::string& argument : arguments) {
    const std::string valid = common::ReplaceInvalidUtf8(argument);
    if (valid != argument) {
      return UsageError(absl::StrCat("\"", valid, "\" is not valid UTF-8"), "",
                        std::count(arguments.begin(), arguments.end(), "--json") > 0, environment);
    }
  }
  const std::vector<std::unique_ptr<Command>> commands = MakeCommands();
  CLI::App app("Evaluates how transformers look things up: jobs on a Hopscope server.", "hopscope");
  app.require_subcommand(1);
  app.set_help_flag("--help,-h", "Print this help and exit");
  app.set_version_flag("--version", common::VersionText("hopscope"), "Print the version and exit");
  app.footer("Each command has its own help: hopscope COMMAND --help");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);

  std::map<std::string, std::string> examples = {{"hopscope", kExamples}};
  std::map<const CLI::App*, Command*> by_app;
  std::vector<std::string> names;
  for (const auto& command : commands) {
    CLI::App* sub = app.add_subcommand(command->name(), command->summary());
    command->AddOptions(*sub);
    sub->footer(command->notes());
    sub->group("Commands");
    examples[command->name()] = command->examples();
    by_app[sub] = command.get();
    names.push_back(command->name());
  }
  const auto formatter = std::make_shared<HelpFormatter>(std::move(examples));
  app.formatter(formatter);
  for (CLI::App* sub : app.get_subcommands({})) sub->formatter(formatter);
  formatter->label("SUBCOMMAND", "COMMAND");

  // The first word that is no option is the command: those before it take no values.
  const auto word =
      std::find_if(arguments.begin(), arguments.end(),
                   [](const std::string& argument) { return !absl::StartsWith(argument, "-"); });
  const std::string typed = word == arguments.end() ? "" : *word;
  const bool known = std::find(names.begin(), names.end(), typed) != names.end();
  const bool asks_json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  if (!typed.empty() && !known) {
    const std::string nearest = client::NearestName(typed, names);
    return UsageError(
        absl::StrCat("unknown command \"", typed, "\"",
                     nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?"),
                     " (commands: ", absl::StrJoin(names, ", "), ")"),
        "", asks_json, environment);
  }

  try {
    // CLI11 takes them last first.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success& success) {
    // --help or --version.
    app.exit(success, *environment.console.out, *environment.console.err);
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    if (typed.empty() && arguments.empty()) {
      *environment.console.err << app.help();
      return kExitUsage;
    }
    return UsageError(common::CommandLineErrorText(app, error), typed, asks_json, environment);
  }
  return by_app.at(app.get_subcommands().front())->Run(environment);
}

}  // namespace

int RunApp(const std::vector<std::string>& arguments, const Environment& environment) {
  return CheckOutput(RunCommandLine(arguments, environment), environment);
}

}  // namespace hopscope::cli

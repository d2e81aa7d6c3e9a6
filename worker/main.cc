// hopscope-worker: computes units for a server; and, without one, `inspect` and `score` of a
// checkpoint, `construct` and `theory`.
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/model_root.h"
#include "common/command_line.h"
#include "common/status.h"
#include "common/version.h"
#include "worker/engine/offline/construct.h"
#include "worker/engine/offline/inspect.h"
#include "worker/engine/offline/score.h"
#include "worker/engine/torch_engine.h"
#include "worker/link/worker_flags.h"
#include "worker/link/worker_program.h"

namespace {

using ::hopscope::engine::ConstructOptions;
using ::hopscope::engine::InspectOptions;
using ::hopscope::engine::ScoreOptions;
using ::hopscope::engine::TheoryOptions;
using ::hopscope::engine::TorchEngine;
using ::hopscope::link::WorkerFlags;

constexpr char kProgram[] = "hopscope-worker";
constexpr char kDescription[] = R"(Examples:
  hopscope-worker --server 127.0.0.1:7070 --model_root checkpoints --threads 2
      Works for a server until it is told to stop (SIGTERM or Ctrl-C).
  hopscope-worker inspect --checkpoint checkpoints/number/step-06750 --tokens tokens.jsonl \
      --capture logits,attention --dtype float64 --output inspected.safetensors
  hopscope-worker score --checkpoint checkpoints/number/step-06750 --tokens tokens.jsonl \
      --scorers accuracy,positional_symbolic --output scores.json
  hopscope-worker construct --construction index --output checkpoints/constructed/index
      Writes a transformer that solves the Number task by construction.
  hopscope-worker theory --construction retrieval --lengths 17,32,64
      Prints how clearly a construction sees its target at each length.

Computes evaluation units with LibTorch, on CPU threads or one CUDA device.)";
constexpr char kInspectDescription[] = R"(Examples:
  hopscope-worker inspect --checkpoint checkpoints/number/step-06750 --tokens tokens.jsonl \
      --capture logits,hidden,attention --dtype float64 --output inspected.safetensors

Writes what a checkpoint computes for each line of a tokens file, {"tokens": [3, 14, 15]}: tensors logits.i
[tokens, vocab], hidden.i [layers + 1, tokens, d_model] and attention.i [layers, heads, tokens, tokens].)";
constexpr char kScoreDescription[] = R"(Examples:
  hopscope-worker score --checkpoint checkpoints/number/step-06750 --tokens tokens.jsonl \
      --scorers accuracy,positional_symbolic --tau 1e-4 --tau 0.05 --dtype float64 --output scores.json
  hopscope-worker score --checkpoint checkpoints/letter/step-06750 --tokens tokens.jsonl \
      --scorers positional_symbolic --param positional_symbolic.queries=hops \
      --param positional_symbolic.metrics=positional,symbolic,swapped_mass,contrast --output scores.json

Scores each head on each line of a tokens file, {"tokens": [3, 14, 15], "label": 92}. A line may also name
"queries": [1, 2], the slots that positional_symbolic.queries=hops scores, and "blocks": [[0, 1], [1, 3]], runs of
slots that it swaps. docs/scores.md lists the parameters, as does hopscope capabilities.)";

constexpr char kConstructDescription[] = R"(Examples:
  hopscope-worker construct --construction index --layers 4 --theta 0.8 --beta 3200 --output checkpoints/constructed/index
  hopscope-worker construct --construction retrieval --output checkpoints/constructed/retrieval

Writes the checkpoint of a transformer whose weights are written down, a layer a hop: index solves task number by
position, retrieval solves task letter by content.)";
constexpr char kTheoryDescription[] = R"(Examples:
  hopscope-worker theory --construction index --lengths 8,16,32,64
  hopscope-worker theory --construction retrieval --theta 0.0027 --letters 8 --lengths 17,32,64,100

Prints as JSON, for each length, the worst-case gap of a construction: the logit of its target minus the largest
other one, in units of 1/beta, with an upper bound on it.)";

// CLI11's help, in whose list of commands each has one line and not its whole description.
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::map<std::string, std::string> summaries)
      : summaries_(std::move(summaries)) {
    column_width(36);
  }

  std::string make_subcommand(const CLI::App* command) const override {
    std::stringstream text;
    CLI::detail::format_help(text, command->get_name(), summaries_.at(command->get_name()),
                             get_column_width());
    return text.str();
  }

 private:
  const std::map<std::string, std::string> summaries_;  // by the name of the command
};

// What both offline commands on checkpoints take.
template <typename Options>
void AddOfflineFlags(CLI::App* command, Options* options) {
  command
      ->add_option("--checkpoint", options->checkpoint,
                   "Folder with config.json and safetensors weights")
      ->type_name("DIR")
      ->required();
  command->add_option("--tokens", options->tokens, "Sequences, one JSON object a line")
      ->type_name("FILE.jsonl")
      ->required();
  command->add_option("--dtype", options->dtype, "float32, float64, bfloat16 or float16")
      ->type_name("DTYPE")
      ->capture_default_str();
  command->add_option("--output", options->output, "File to write")->type_name("FILE")->required();
}

template <typename Options>
void AddConstructionFlags(CLI::App* command, Options* options) {
  command->add_option("--construction", options->construction, "index or retrieval")
      ->type_name("NAME")
      ->required();
  command->add_option("--theta", options->theta, "Radians a slot [0.8; retrieval 0.0027]")
      ->type_name("X");
}

int RunOffline(const absl::Status& status) {
  if (status.ok()) return hopscope::link::kExitOk;
  const bool wrong_flag = absl::IsInvalidArgument(status) || absl::IsNotFound(status);
  return hopscope::link::ExitWithMessage(
      kProgram, status,
      wrong_flag ? hopscope::link::kExitConfiguration : hopscope::link::kExitFailure);
}

int Work(const WorkerFlags& flags) {
  std::unique_ptr<hopscope::checkpoint::ModelRoot> model_root;
  return hopscope::link::RunWorkerProgram(
      kProgram, flags, [&]() -> absl::StatusOr<std::unique_ptr<hopscope::engine::Engine>> {
        auto opened = hopscope::checkpoint::ModelRoot::Open(flags.model_root);
        HOPSCOPE_RETURN_IF_ERROR(hopscope::common::Annotate(opened.status(), "--model_root"));
        model_root = *std::move(opened);
        return TorchEngine::Create(
            {.model_root = model_root.get(), .device = flags.device, .threads = flags.threads});
      });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(kDescription, kProgram);
  app.set_version_flag("--version", hopscope::common::VersionText(kProgram));
  app.formatter(std::make_shared<HelpFormatter>(std::map<std::string, std::string>{
      {"inspect", "Write a checkpoint's logits, hidden states and attention"},
      {"score", "Write a checkpoint's scores of attention heads"},
      {"construct", "Write a checkpoint whose weights are written down"},
      {"theory", "Print worst-case gaps of such checkpoints, and bounds on them"}}));
  WorkerFlags flags;
  hopscope::link::AddWorkerFlags(&app, &flags);

  InspectOptions inspect;
  CLI::App* const inspect_command = app.add_subcommand("inspect", kInspectDescription);
  AddOfflineFlags(inspect_command, &inspect);
  inspect_command->add_option("--capture", inspect.capture, "Of logits, hidden, attention")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->required();

  ScoreOptions score;
  CLI::App* const score_command = app.add_subcommand("score", kScoreDescription);
  AddOfflineFlags(score_command, &score);
  score_command->add_option("--scorers", score.scorers, "Scores to compute")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->required();
  score_command
      ->add_option("--tau", score.taus,
                   "Temperature of scorers that have one; may be given several times")
      ->type_name("X");
  score_command
      ->add_option("--param", score.params,
                   "A parameter of a scorer, lists as a,b; may be given several times")
      ->type_name("SCORER.KEY=VALUE");
  score_command
      ->add_option("--gamma", score.gammas,
                   "Threshold of the labels of heads (default: 0.1); may be given several times")
      ->type_name("X");
  score_command->add_option("--threads", score.threads, "Threads that compute; 0: all processors")
      ->type_name("N")
      ->capture_default_str();

  ConstructOptions construct;
  CLI::App* const construct_command = app.add_subcommand("construct", kConstructDescription);
  AddConstructionFlags(construct_command, &construct);
  construct_command->add_option("--layers", construct.layers, "Layers, one a hop")
      ->type_name("N")
      ->capture_default_str();
  construct_command
      ->add_option("--beta", construct.beta, "Scale of attention [3200; retrieval 100]")
      ->type_name("X");
  construct_command
      ->add_option("--letters", construct.letters, "Letters of the alphabet [120; retrieval 8]")
      ->type_name("N");
  construct_command
      ->add_option("--integers", construct.integers, "Integers of the alphabet [16; retrieval 8]")
      ->type_name("N");
  construct_command->add_option("--output", construct.output, "Folder to write, new or empty")
      ->type_name("DIR")
      ->required();

  TheoryOptions theory;
  CLI::App* const theory_command = app.add_subcommand("theory", kTheoryDescription);
  AddConstructionFlags(theory_command, &theory);
  theory_command->add_option("--letters", theory.letters, "Letters of retrieval's alphabet [8]")
      ->type_name("N");
  theory_command->add_option("--lengths", theory.lengths, "Tokens, the query included")
      ->type_name("N,...")
      ->delimiter(',')
      ->required();
  theory_command->add_flag("--per_offset", theory.per_offset,
                           "Also the gap of every offset that index may point at");
  theory_command
      ->add_option("--output", theory.output, "File to write; standard output unless given")
      ->type_name("FILE");

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    return hopscope::link::ExitWithMessage(
        kProgram,
        absl::InvalidArgumentError(
            absl::StrCat(hopscope::common::CommandLineErrorText(app, error), "; see ", kProgram,
                         " --help (commands: inspect, score, construct, theory)")),
        hopscope::link::kExitConfiguration);
  }
  if (*inspect_command) return RunOffline(hopscope::engine::RunInspect(inspect));
  if (*score_command) return RunOffline(hopscope::engine::RunScore(score));
  if (*construct_command) return RunOffline(hopscope::engine::RunConstruct(construct));
  if (*theory_command) return RunOffline(hopscope::engine::RunTheory(theory));
  return Work(flags);
}

// hopscope-worker: computes units for a server; and, without one, `inspect` and `score` of a
// checkpoint.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "common/checkpoint/model_root.h"
#include "common/status.h"
#include "common/version.h"
#include "worker/engine/offline/inspect.h"
#include "worker/engine/offline/score.h"
#include "worker/engine/torch_engine.h"
#include "worker/link/worker_flags.h"
#include "worker/link/worker_program.h"

namespace {

using ::hopscope::engine::InspectOptions;
using ::hopscope::engine::ScoreOptions;
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

// What both offline commands take.
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
  command->add_option("--dtype", options->dtype, "float32 or float64")
      ->type_name("DTYPE")
      ->capture_default_str();
  command->add_option("--output", options->output, "File to write")->type_name("FILE")->required();
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
  app.get_formatter()->column_width(36);
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

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    return hopscope::link::ExitWithMessage(kProgram, absl::InvalidArgumentError(error.what()),
                                           hopscope::link::kExitConfiguration);
  }
  if (*inspect_command) return RunOffline(hopscope::engine::RunInspect(inspect));
  if (*score_command) return RunOffline(hopscope::engine::RunScore(score));
  return Work(flags);
}

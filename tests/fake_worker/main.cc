// hopscope-fake-worker: a worker with the link and flags of hopscope-worker and an engine without a
// model, for tests across processes that need no LibTorch, such as those under sanitizers.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/time/time.h"
#include "common/checkpoint/model_root.h"
#include "common/status.h"
#include "common/version.h"
#include "worker/engine/fake_engine.h"
#include "worker/link/worker_flags.h"
#include "worker/link/worker_program.h"

namespace {

using ::hopscope::engine::FakeEngine;

constexpr char kProgram[] = "hopscope-fake-worker";
constexpr char kDescription[] = R"(Examples:
  hopscope-fake-worker --server 127.0.0.1:7070 --model_root checkpoints --fake_delay 100ms
      Each unit takes 100 ms; its results are drawn from a hash of what the unit says.

A worker for tests: as hopscope-worker, but nothing is computed. --device and --threads have no effect.)";

}  // namespace

int main(int argc, char** argv) {
  hopscope::link::WorkerFlags flags;
  // The shape of the models in checkpoints/; the server refuses scores of another one.
  FakeEngine::Options engine_options{.layers = 12, .heads = 1};
  std::string delay = "0s";
  std::string delay_per_item = "0s";
  CLI::App app(kDescription, kProgram);
  app.set_version_flag("--version", hopscope::common::VersionText(kProgram));
  app.get_formatter()->column_width(36);
  hopscope::link::AddWorkerFlags(&app, &flags);
  app.add_option("--fake_capacity", engine_options.capacity, "Units at once")->type_name("N");
  app.add_option("--fake_kind", engine_options.kind, "Kind of the worker, which results depend on")
      ->type_name("TEXT");
  app.add_option("--fake_layers", engine_options.layers, "Layers that scores are given for")
      ->type_name("N");
  app.add_option("--fake_heads", engine_options.heads, "Heads a layer")->type_name("N");
  app.add_option("--fake_delay", delay, "How long a unit takes")->type_name("DURATION");
  app.add_option("--fake_delay_per_item", delay_per_item, "Further time for each item")
      ->type_name("DURATION");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    return hopscope::link::ExitWithMessage(kProgram, absl::InvalidArgumentError(error.what()),
                                           hopscope::link::kExitConfiguration);
  }
  if (!absl::ParseDuration(delay, &engine_options.delay) ||
      !absl::ParseDuration(delay_per_item, &engine_options.delay_per_item)) {
    return hopscope::link::ExitWithMessage(
        kProgram,
        absl::InvalidArgumentError(
            "--fake_delay and --fake_delay_per_item are durations such as 10ms"),
        hopscope::link::kExitConfiguration);
  }
  return hopscope::link::RunWorkerProgram(
      kProgram, flags, [&]() -> absl::StatusOr<std::unique_ptr<hopscope::engine::Engine>> {
        // As the real one, so that a wrong folder shows.
        HOPSCOPE_RETURN_IF_ERROR(hopscope::common::Annotate(
            hopscope::checkpoint::ModelRoot::Open(flags.model_root).status(), "--model_root"));
        return std::make_unique<FakeEngine>(engine_options);
      });
}

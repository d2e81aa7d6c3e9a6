// Measures the engine alone on a whole training history: every checkpoint folder under a model root
// is loaded, digest included, and evaluated with accuracy and head scores.
//
// Prints one line of JSON. What the service adds around the engine is the difference to
// `hopscope run` on the same folders.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "common/checkpoint/model_root.h"
#include "common/mutex.h"
#include "nlohmann/json.hpp"
#include "worker/engine/torch_engine.h"

namespace hopscope::engine {
namespace {

constexpr int kHops = 4;

struct Settings {
  std::string model_root;
  std::string task = "number";
  int64_t samples = 300;
  int threads = 0;
};

// The units of all checkpoints, handed out one by one to the threads that run them.
class History {
 public:
  History(const Settings& settings, const checkpoint::ModelRoot* root,
          std::vector<std::string> names)
      : settings_(settings), root_(root), names_(std::move(names)) {}

  // Runs units until none is left or one has failed.
  void Work(TorchEngine* engine) {
    for (;;) {
      const size_t next = next_.fetch_add(1);
      if (next >= names_.size() * kHops) return;
      RunStatistics statistics;
      const absl::Status status =
          RunUnit(engine, names_[next / kHops], static_cast<int>(next % kHops) + 1, &statistics);
      common::MutexLock lock(&mutex_);
      if (!status.ok()) {
        status_ = status;
        next_.store(names_.size() * kHops);
        return;
      }
      totals_.sequences += statistics.sequences;
      totals_.model_load_seconds += statistics.model_load_seconds;
      totals_.forward_seconds += statistics.forward_seconds;
      for (const auto& score : statistics.score_seconds) score_seconds_ += score.second;
    }
  }

  absl::Status status() {
    common::MutexLock lock(&mutex_);
    return status_;
  }

  nlohmann::json Report(double seconds, int threads) {
    common::MutexLock lock(&mutex_);
    return {{"checkpoints", names_.size()},
            {"sequences", totals_.sequences},
            {"correct", correct_},
            {"threads", threads},
            {"seconds", seconds},
            {"load_seconds", totals_.model_load_seconds},
            {"forward_thread_seconds", totals_.forward_seconds},
            {"score_thread_seconds", score_seconds_}};
  }

 private:
  absl::Status RunUnit(TorchEngine* engine, const std::string& name, int hops,
                       RunStatistics* statistics) {
    const absl::StatusOr<std::string> digest = root_->Digest(name);
    if (!digest.ok()) return digest.status();
    v1::WorkUnit unit;
    unit.set_item_count(settings_.samples);
    v1::SequenceSpec* sequences = unit.mutable_sequences();
    sequences->set_task(settings_.task);
    sequences->set_hops(hops);
    sequences->mutable_window()->set_target(8);
    sequences->mutable_window()->set_pre_target(8);
    sequences->set_padding("random");
    sequences->set_seed(42);
    sequences->set_split(v1::SPLIT_EVALUATION);
    unit.mutable_checkpoint()->set_name(name);
    unit.mutable_checkpoint()->set_digest(*digest);
    unit.set_dtype(v1::DTYPE_FLOAT32);
    unit.add_scorers()->set_name("accuracy");
    unit.add_scorers()->set_name("positional_symbolic");
    const absl::StatusOr<v1::UnitResult> result = engine->Run(unit, never_, statistics);
    if (!result.ok()) return result.status();
    common::MutexLock lock(&mutex_);
    correct_ += result->correct();
    return absl::OkStatus();
  }

  const Settings& settings_;
  const checkpoint::ModelRoot* const root_;
  const std::vector<std::string> names_;
  const CancelFlag never_;
  std::atomic<size_t> next_{0};
  common::Mutex mutex_;
  RunStatistics totals_ ABSL_GUARDED_BY(mutex_);
  double score_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t correct_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

int Measure(const Settings& settings) {
  const auto start = std::chrono::steady_clock::now();
  const auto root = checkpoint::ModelRoot::Open(settings.model_root);
  if (!root.ok()) return Fail(root.status());
  const auto names = (*root)->List();
  if (!names.ok()) return Fail(names.status());
  const auto engine = TorchEngine::Create(
      {.model_root = root->get(), .device = "cpu", .threads = settings.threads});
  if (!engine.ok()) return Fail(engine.status());
  v1::WorkerDescription description;
  (*engine)->Describe(&description);
  History history(settings, root->get(), *names);
  std::vector<std::thread> runners;
  for (int i = 0; i < std::max(1, static_cast<int>(description.capacity())); ++i) {
    runners.emplace_back([&] { history.Work(engine->get()); });
  }
  for (std::thread& runner : runners) runner.join();
  if (!history.status().ok()) return Fail(history.status());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  std::printf("%s\n", history.Report(elapsed.count(), description.threads()).dump().c_str());
  return 0;
}

}  // namespace
}  // namespace hopscope::engine

int main(int argc, char** argv) {
  hopscope::engine::Settings settings;
  CLI::App app("Example: bench_history --model_root history --samples 300\n");
  app.add_option("--model_root", settings.model_root, "folder with the checkpoint folders")
      ->required();
  app.add_option("--task", settings.task, "number or letter");
  app.add_option("--samples", settings.samples, "sequences for each of 1 to 4 hops")
      ->check(CLI::PositiveNumber);
  app.add_option("--threads", settings.threads, "threads; 0: one for each processor");
  CLI11_PARSE(app, argc, argv);
  return hopscope::engine::Measure(settings);
}

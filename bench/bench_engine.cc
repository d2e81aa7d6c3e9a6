// Measures the engine on one machine: sequences a second through the forward pass alone and with
// scores, next to the rate of the machine's own matrix product, in one interleaved run.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "common/checkpoint/checkpoint.h"
#include "common/spec/catalog.h"
#include "nlohmann/json.hpp"
#include "worker/engine/compute_pool.h"
#include "worker/engine/evaluation.h"
#include "worker/engine/host.h"
#include "worker/engine/model/aligned_buffer.h"
#include "worker/engine/model/cpu_kernels.h"
#include "worker/engine/model/matrix_product.h"
#include "worker/engine/model/torch_runtime.h"
#include "worker/engine/scorers/accuracy.h"
#include "worker/engine/scorers/registry.h"
#include "worker/engine/sequence_source.h"

namespace hopscope::engine {
namespace {

// Seconds since some moment: elapsed time, or processor time of all threads over their number.
struct Stopwatch {
  bool processor_time = false;
  int threads = 1;

  double Now() const {
    timespec now{};
    clock_gettime(processor_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    const double seconds =
        static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
    return processor_time ? seconds / threads : seconds;
  }
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

struct Settings {
  std::string checkpoint;
  std::vector<int64_t> tokens = {17, 67, 117, 317, 867};
  int threads = 0;
  int runs = 5;
  double seconds = 1;
  int64_t items = 0;
  bool float64 = false;
  bool json = false;
  bool processor_time = false;

  Stopwatch stopwatch() const { return {.processor_time = processor_time, .threads = threads}; }
};

// GFLOP/s of c = a b^T, every thread with matrices of its own at once.
template <typename T>
double MatrixRate(const Settings& settings, int64_t m, int64_t n, int64_t k) {
  const int threads = settings.threads;
  const Stopwatch stopwatch = settings.stopwatch();
  const double seconds = settings.seconds / 2;
  std::vector<std::thread> pool;
  std::vector<double> rates(threads, 0);
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] {
      UseOneTorchThread();
      AlignedBuffer<T> a, b, c;
      std::fill_n(a.AtLeast(m * k), m * k, T{1});
      std::fill_n(b.AtLeast(n * k), n * k, T{1});
      c.AtLeast(m * n);
      int64_t products = 0;
      const double start = stopwatch.Now();
      do {
        MultiplyTransposed(m, n, k, a.AtLeast(0), k, b.AtLeast(0), k, c.AtLeast(0), n);
        ++products;
      } while (stopwatch.Now() - start < seconds);
      rates[t] = 2e-9 * static_cast<double>(m * n * k) * static_cast<double>(products) /
                 (stopwatch.Now() - start);
    });
  }
  for (std::thread& thread : pool) thread.join();
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

// Operations of a forward pass with logits for every token, the usual base for a rate between
// programs: a product-sum counts two.
double ForwardFlops(const checkpoint::Architecture& a, int64_t tokens) {
  const double t = static_cast<double>(tokens);
  const double per_token = static_cast<double>(a.layers * a.d_model *
                                               ((2 * a.heads + 2 * a.kv_heads) * a.d_head +
                                                (a.gated_mlp ? 3 : 2) * a.d_mlp)) +
                           static_cast<double>(a.d_model * a.vocab_size);
  const double attention = static_cast<double>(a.layers * a.heads * a.d_head) * t;
  return 2 * t * (per_token + attention);
}

// Of these, the operations that an answer after the last token needs, which are those that the
// engine executes: one row of the last layer's queries, its MLP and the logits, and the causal half
// of the attention.
double ExecutedFlops(const checkpoint::Architecture& a, int64_t tokens) {
  const double t = static_cast<double>(tokens);
  const double keys_values = static_cast<double>(2 * a.kv_heads * a.d_head * a.d_model);
  const double others =
      static_cast<double>(a.d_model * (2 * a.heads * a.d_head + (a.gated_mlp ? 3 : 2) * a.d_mlp));
  const double pairs = static_cast<double>(2 * a.heads * a.d_head);  // of a query and a key
  const double full_layers = static_cast<double>(a.layers - 1);
  return 2 * (full_layers * (t * (keys_values + others) + t * (t + 1) / 2 * pairs) +
              t * keys_values + others + t * pairs + static_cast<double>(a.d_model * a.vocab_size));
}

// What one measurement found.
struct Rate {
  double per_second = 0;    // sequences
  double scores_share = 0;  // part of the threads' computing time that the scorers took
};

struct Row {
  int64_t tokens = 0;
  std::vector<double> forward;  // sequences a second
  std::vector<double> scored;
  std::vector<double> scores_share;
};

class Bench {
 public:
  Bench(const Settings& settings, std::shared_ptr<const Model> model)
      : settings_(settings), model_(std::move(model)), pool_(settings.threads) {}

  // Repeats `items` sequences, or as many as fill the time where it is 0, for about `seconds`.
  Rate Measure(int64_t tokens, bool scored, double seconds) {
    v1::SequenceSpec spec;
    spec.set_task(model_->architecture().vocab_size >= 137 ? "number" : "letter");
    spec.set_hops(4);
    spec.set_added_tokens(static_cast<int32_t>(tokens - 17));
    spec.mutable_window()->set_target(8);
    spec.mutable_window()->set_pre_target(8);
    spec.set_padding("random");
    spec.set_seed(42);
    spec.set_split(v1::SPLIT_EVALUATION);
    const int64_t batch =
        MicroBatchSize(model_->architecture(), model_->device(), tokens) * settings_.threads;
    // A first pass says how many items fill the time.
    int64_t items = settings_.items > 0 ? settings_.items : batch;
    int64_t repeats = 1;
    Outcome first = Run(spec, items, scored);
    while (settings_.items == 0 && first.seconds < seconds / 4) {
      items *= 2;
      first = Run(spec, items, scored);
    }
    const double fill = seconds / first.seconds;
    if (settings_.items > 0) {
      repeats = std::max<int64_t>(1, static_cast<int64_t>(fill));
    } else {
      items =
          std::max(batch, static_cast<int64_t>(static_cast<double>(items) * fill) / batch * batch);
    }
    Outcome sum;
    for (int64_t i = 0; i < repeats; ++i) {
      const Outcome one = Run(spec, items, scored);
      sum.seconds += one.seconds;
      sum.forward_seconds += one.forward_seconds;
      sum.score_seconds += one.score_seconds;
    }
    return {.per_second = static_cast<double>(items * repeats) / sum.seconds,
            .scores_share = sum.score_seconds / (sum.forward_seconds + sum.score_seconds)};
  }

 private:
  struct Outcome {
    double seconds = 0;
    double forward_seconds = 0;  // summed over threads, as is the next
    double score_seconds = 0;
  };

  Outcome Run(const v1::SequenceSpec& spec, int64_t items, bool scored) {
    const auto source = TaskSource::Create(spec, 0, items);
    ItemFailures failures(items);
    Accuracy accuracy(items, &failures);
    Evaluation evaluation{.model = model_.get(), .source = &source.value(), .scorers = {&accuracy}};
    v1::ScorerSpec asked;
    asked.set_name("positional_symbolic");
    const auto scores = MakeScorer("scorer", asked, model_->architecture(), items, &failures);
    if (scored) evaluation.scorers.push_back(scores->get());
    const Stopwatch stopwatch = settings_.stopwatch();
    RunStatistics statistics;
    const double start = stopwatch.Now();
    const absl::Status status = Evaluate(evaluation, &pool_, &statistics);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      std::exit(1);
    }
    Outcome outcome{.seconds = stopwatch.Now() - start,
                    .forward_seconds = statistics.forward_seconds};
    for (const auto& [name, seconds] : statistics.score_seconds) outcome.score_seconds += seconds;
    return outcome;
  }

  const Settings& settings_;
  const std::shared_ptr<const Model> model_;
  ComputePool pool_;
};

template <typename T>
int Measure(const Settings& settings, const checkpoint::Checkpoint& checkpoint) {
  const auto model =
      Model::Load(checkpoint, settings.float64 ? v1::DTYPE_FLOAT64 : v1::DTYPE_FLOAT32);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().ToString().c_str());
    return 1;
  }
  const checkpoint::Architecture& a = checkpoint.architecture();
  const int64_t rows = MicroBatchSize(a, (*model)->device(), 17) * 17;
  const int64_t in = (a.heads + 2 * a.kv_heads) * a.d_head + (a.gated_mlp ? 2 : 1) * a.d_mlp;
  const int64_t out = a.heads * a.d_head + a.d_mlp;
  Bench bench(settings, *model);
  std::vector<double> square, wide, narrow;
  std::vector<Row> table;
  for (const int64_t tokens : settings.tokens) table.push_back({.tokens = tokens});
  for (int run = 0; run < settings.runs; ++run) {
    square.push_back(MatrixRate<T>(settings, 1024, 1024, 1024));
    wide.push_back(MatrixRate<T>(settings, rows, in, a.d_model));
    narrow.push_back(MatrixRate<T>(settings, rows, a.d_model, out));
    for (Row& row : table) {
      row.forward.push_back(bench.Measure(row.tokens, false, settings.seconds).per_second);
      const Rate scored = bench.Measure(row.tokens, true, settings.seconds);
      row.scored.push_back(scored.per_second);
      row.scores_share.push_back(scored.scores_share);
    }
  }

  nlohmann::json report = {{"processor", HostProcessorName()},
                           {"isa", CpuIsaName()},
                           {"torch", TorchVersion()},
                           {"threads", settings.threads},
                           {"dtype", settings.float64 ? "float64" : "float32"},
                           {"runs", settings.runs},
                           {"matrix_gflops",
                            {{"1024x1024x1024", Median(square)},
                             {"model_in", Median(wide)},
                             {"model_out", Median(narrow)}}},
                           {"lengths", nlohmann::json::array()}};
  if (!settings.json) {
    std::printf("%s, %s, LibTorch %s, %d threads, medians of %d runs\n\n",
                HostProcessorName().c_str(), CpuIsaName(), TorchVersion().c_str(), settings.threads,
                settings.runs);
    std::printf(
        "matrix product, GFLOP/s: %.1f at 1024^3, %.1f at [%ld, %ld] x [%ld, %ld], %.1f at "
        "[%ld, %ld] x [%ld, %ld]\n\n",
        Median(square), Median(wide), rows, a.d_model, a.d_model, in, Median(narrow), rows, out,
        out, a.d_model);
    std::printf("%7s  %12s  %12s  %9s  %9s  %8s  %12s  %10s\n", "tokens", "forward/s",
                "ms/sequence", "GFLOP/s", "executed", "of 1024^3", "scored/s", "scores add");
  }
  for (const Row& row : table) {
    const double forward = Median(row.forward);
    const double scored = Median(row.scored);
    const double gflops = forward * ForwardFlops(a, row.tokens) * 1e-9;
    const double executed = forward * ExecutedFlops(a, row.tokens) * 1e-9;
    const double added = forward / scored - 1;
    report["lengths"].push_back({{"tokens", row.tokens},
                                 {"forward_per_second", forward},
                                 {"scored_per_second", scored},
                                 {"forward_gflops", gflops},
                                 {"executed_gflops", executed},
                                 {"scores_share", Median(row.scores_share)},
                                 {"scores_add", added}});
    if (!settings.json) {
      std::printf("%7ld  %12.1f  %12.3f  %9.1f  %9.1f  %8.0f%%  %12.1f  %9.1f%%\n", row.tokens,
                  forward, 1e3 / forward, gflops, executed, 100 * gflops / Median(square), scored,
                  100 * added);
    }
  }
  if (settings.json) std::printf("%s\n", report.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace hopscope::engine

int main(int argc, char** argv) {
  hopscope::engine::Settings settings;
  CLI::App app(
      "Examples:\n"
      "  bench_engine --checkpoint checkpoints/number/step-06750\n"
      "  bench_engine --checkpoint checkpoints/letter/step-06750 --threads 1 --tokens 17 317 "
      "--json\n");
  app.add_option("--checkpoint", settings.checkpoint, "checkpoint folder")->required();
  app.add_option("--tokens", settings.tokens, "sequence lengths, from 17")
      ->check(CLI::Range(17, 5017));
  app.add_option("--threads", settings.threads, "threads; 0: one for each processor");
  app.add_option("--runs", settings.runs, "runs to take medians of")->check(CLI::PositiveNumber);
  app.add_option("--seconds", settings.seconds, "seconds a measurement")
      ->check(CLI::PositiveNumber);
  app.add_option("--items", settings.items,
                 "sequences at a time, again and again; 0: as many as fill the time")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--float64", settings.float64, "compute in float64");
  app.add_flag(
      "--processor_time", settings.processor_time,
      "measure processor time in place of elapsed time: on a machine that does other work");
  app.add_flag("--json", settings.json, "print JSON");
  CLI11_PARSE(app, argc, argv);
  hopscope::engine::PinBlasCodePath();
  if (settings.threads <= 0) settings.threads = hopscope::engine::HostThreads();
  const auto checkpoint = hopscope::checkpoint::Checkpoint::Open(settings.checkpoint);
  if (!checkpoint.ok()) {
    std::fprintf(stderr, "%s\n", checkpoint.status().ToString().c_str());
    return 1;
  }
  return settings.float64 ? hopscope::engine::Measure<double>(settings, *checkpoint)
                          : hopscope::engine::Measure<float>(settings, *checkpoint);
}

#include "worker/link/worker_metrics.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/version.h"

namespace hopscope::link {
namespace {

// Of a unit, which is made to take about a second; long sequences and slow machines take minutes.
const prometheus::Histogram::BucketBoundaries kUnitSeconds = {0.01, 0.03, 0.1, 0.3, 1,   3,
                                                              10,   30,   100, 300, 1000};

std::vector<std::string> Scorers(const v1::WorkerDescription& description) {
  std::vector<std::string> scorers(description.scorers().begin(), description.scorers().end());
  scorers.push_back("other");
  return scorers;
}

}  // namespace

WorkerMetrics::WorkerMetrics(const v1::WorkerDescription& description, const engine::Engine* engine,
                             const common::Clock* clock)
    : engine_(engine),
      busy_(clock, std::max(1, description.capacity())),
      sequences_(prometheus::BuildCounter()
                     .Name("hopscope_worker_sequences_total")
                     .Help("Sequences run through a model.")
                     .Register(registry_)
                     .Add({})),
      tokens_(prometheus::BuildCounter()
                  .Name("hopscope_worker_tokens_total")
                  .Help("Tokens of those sequences.")
                  .Register(registry_)
                  .Add({})),
      forward_seconds_(prometheus::BuildHistogram()
                           .Name("hopscope_worker_forward_seconds")
                           .Help("Time in forward passes by unit, summed over threads.")
                           .Register(registry_)
                           .Add({}, kUnitSeconds)),
      score_seconds_(prometheus::BuildHistogram()
                         .Name("hopscope_worker_score_seconds")
                         .Help("Time in a scorer by unit, summed over threads.")
                         .Register(registry_),
                     {{"scorer", Scorers(description)}}, kUnitSeconds),
      model_load_seconds_(prometheus::BuildHistogram()
                              .Name("hopscope_worker_model_load_seconds")
                              .Help("Time to check and load a checkpoint.")
                              .Register(registry_)
                              .Add({}, kUnitSeconds)),
      busy_ratio_(prometheus::BuildGauge()
                      .Name("hopscope_worker_busy_ratio")
                      .Help("Share of the capacity that computed over the last half minute.")
                      .Register(registry_)
                      .Add({})),
      memory_bytes_(prometheus::BuildGauge()
                        .Name("hopscope_worker_device_memory_bytes")
                        .Help("Device memory: what models and activations may take (limit), and "
                              "what loaded weights take (weights).")
                        .Register(registry_),
                    {{"kind", {"limit", "weights"}}}),
      checkpoint_cache_bytes_(prometheus::BuildGauge()
                                  .Name("hopscope_worker_checkpoint_cache_bytes")
                                  .Help("Bytes of checkpoints that are kept loaded.")
                                  .Register(registry_)
                                  .Add({})) {
  memory_bytes_.For({"limit"}).Set(static_cast<double>(description.memory_bytes()));
  prometheus::BuildGauge()
      .Name("hopscope_build_info")
      .Help("1, with the version of the program.")
      .Register(registry_)
      .Add({{"version", std::string(common::VersionString())}, {"program", "hopscope-worker"}})
      .Set(1);
}

void WorkerMetrics::EndRun(const engine::RunStatistics& statistics) {
  busy_.EndRun();
  sequences_.Increment(static_cast<double>(statistics.sequences));
  tokens_.Increment(static_cast<double>(statistics.tokens));
  if (statistics.sequences > 0) forward_seconds_.Observe(statistics.forward_seconds);
  for (const auto& [scorer, seconds] : statistics.score_seconds) {
    score_seconds_.For({scorer}).Observe(seconds);
  }
  if (statistics.model_load_seconds > 0) {
    model_load_seconds_.Observe(statistics.model_load_seconds);
  }
}

std::vector<prometheus::MetricFamily> WorkerMetrics::Collect() const {
  const auto loaded_bytes = static_cast<double>(engine_->LoadedBytes());
  busy_ratio_.Set(busy_.Ratio());
  memory_bytes_.For({"weights"}).Set(loaded_bytes);
  checkpoint_cache_bytes_.Set(loaded_bytes);
  return registry_.Collect();
}

}  // namespace hopscope::link

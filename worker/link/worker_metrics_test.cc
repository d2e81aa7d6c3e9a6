#include "worker/link/worker_metrics.h"

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "prometheus/text_serializer.h"
#include "worker/link/puppet_engine.h"

namespace hopscope::link {
namespace {

class WorkerMetricsTest : public testing::Test {
 protected:
  WorkerMetricsTest() {
    v1::WorkerDescription description;
    description.set_memory_bytes(1000);
    description.set_capacity(1);
    description.add_scorers("accuracy");
    description.add_scorers("positional_symbolic");
    metrics_ = std::make_unique<WorkerMetrics>(description, &engine_, &clock_);
  }

  // Lines of /metrics that are samples.
  std::set<std::string> Samples() {
    const std::string text = prometheus::TextSerializer().Serialize(metrics_->Collect());
    std::set<std::string> samples;
    size_t begin = 0;
    while (begin < text.size()) {
      const size_t end = text.find('\n', begin);
      if (text[begin] != '#') samples.insert(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return samples;
  }

  common::FakeClock clock_{absl::UnixEpoch()};
  PuppetEngine engine_;
  std::unique_ptr<WorkerMetrics> metrics_;
};

TEST_F(WorkerMetricsTest, KnownSeriesStartAtZero) {
  const std::set<std::string> samples = Samples();
  for (const char* sample :
       {"hopscope_worker_sequences_total 0", "hopscope_worker_tokens_total 0",
        "hopscope_worker_forward_seconds_count 0",
        "hopscope_worker_score_seconds_count{scorer=\"accuracy\"} 0",
        "hopscope_worker_score_seconds_count{scorer=\"positional_symbolic\"} 0",
        "hopscope_worker_model_load_seconds_count 0", "hopscope_worker_busy_ratio 0",
        "hopscope_worker_device_memory_bytes{kind=\"limit\"} 1000",
        "hopscope_worker_device_memory_bytes{kind=\"weights\"} 4096",
        "hopscope_worker_checkpoint_cache_bytes 4096"}) {
    EXPECT_EQ(samples.count(sample), 1u) << sample;
  }
}

TEST_F(WorkerMetricsTest, CountsWhatARunSays) {
  engine::RunStatistics statistics;
  statistics.sequences = 60;
  statistics.tokens = 1020;
  statistics.model_load_seconds = 0.25;
  statistics.forward_seconds = 2;
  statistics.score_seconds = {{"accuracy", 0.5}};
  metrics_->BeginRun();
  clock_.Advance(absl::Seconds(3));
  metrics_->EndRun(statistics);
  clock_.Advance(absl::Seconds(1));
  const std::set<std::string> samples = Samples();
  for (const char* sample :
       {"hopscope_worker_sequences_total 60", "hopscope_worker_tokens_total 1020",
        "hopscope_worker_forward_seconds_count 1", "hopscope_worker_forward_seconds_sum 2",
        "hopscope_worker_score_seconds_sum{scorer=\"accuracy\"} 0.5",
        "hopscope_worker_model_load_seconds_sum 0.25", "hopscope_worker_busy_ratio 0.75"}) {
    EXPECT_EQ(samples.count(sample), 1u) << sample;
  }
}

TEST_F(WorkerMetricsTest, CheckpointThatWasLoadedAlreadyIsNoLoad) {
  engine::RunStatistics statistics;
  statistics.sequences = 1;
  metrics_->BeginRun();
  metrics_->EndRun(statistics);
  EXPECT_EQ(Samples().count("hopscope_worker_model_load_seconds_count 0"), 1u);
}

TEST_F(WorkerMetricsTest, UnknownScorersAddNoSeries) {
  const size_t series = Samples().size();
  engine::RunStatistics statistics;
  for (int i = 0; i < 100; ++i)
    statistics.score_seconds.emplace_back("made up " + std::to_string(i), 1);
  metrics_->BeginRun();
  metrics_->EndRun(statistics);
  EXPECT_EQ(Samples().size(), series);
  EXPECT_EQ(Samples().count("hopscope_worker_score_seconds_count{scorer=\"other\"} 100"), 1u);
}

}  // namespace
}  // namespace hopscope::link

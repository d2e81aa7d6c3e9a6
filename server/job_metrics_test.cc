#include "server/job_metrics.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace hopscope::server {
namespace {

class JobMetricsTest : public ::testing::Test {
 protected:
  // "NAME{VALUE,...}", labels in order of their names, to a counter's value or a histogram's count.
  std::map<std::string, double> Values() const {
    std::map<std::string, double> values;
    for (const prometheus::MetricFamily& family : registry_.Collect()) {
      for (const prometheus::ClientMetric& metric : family.metric) {
        std::string key = absl::StrCat(family.name, "{");
        for (const auto& label : metric.label) absl::StrAppend(&key, label.value, ",");
        values[key + "}"] = family.type == prometheus::MetricType::Histogram
                                ? static_cast<double>(metric.histogram.sample_count)
                                : metric.counter.value;
      }
    }
    return values;
  }

  prometheus::Registry registry_;
  JobMetrics metrics_{registry_};
};

TEST_F(JobMetricsTest, EverySeriesStartsAtZero) {
  const std::map<std::string, double> values = Values();
  for (const auto& [key, value] : values) EXPECT_EQ(value, 0) << key;
  for (const char* key :
       {"hopscope_unit_wait_seconds{}", "hopscope_unit_duration_seconds{lost,}",
        "hopscope_units_completed_total{failed,}", "hopscope_unit_retries_total{OUT_OF_MEMORY,}",
        "hopscope_lease_expirations_total{}", "hopscope_items_scored_total{4,65-512,letter,}",
        "hopscope_items_correct_total{1,0,number,}",
        "hopscope_store_operation_seconds{lease_units,}"}) {
    EXPECT_EQ(values.count(key), 1u) << key;
  }
}

TEST_F(JobMetricsTest, CountsWhatHappens) {
  metrics_.OnUnitLeased(absl::Seconds(1));
  metrics_.OnAttemptEnded("lost", absl::Seconds(30));
  metrics_.OnUnitEnded("completed");
  metrics_.OnRetry("WORKER_LOST");
  metrics_.OnLeaseExpired();
  metrics_.OnItemsScored("number", 2, 300, 100, 75);
  metrics_.OnOperation("lease_units", absl::Milliseconds(1), absl::StatusCode::kOk);
  std::map<std::string, double> values = Values();
  EXPECT_EQ(values["hopscope_unit_wait_seconds{}"], 1);
  EXPECT_EQ(values["hopscope_unit_duration_seconds{lost,}"], 1);
  EXPECT_EQ(values["hopscope_units_completed_total{completed,}"], 1);
  EXPECT_EQ(values["hopscope_unit_retries_total{WORKER_LOST,}"], 1);
  EXPECT_EQ(values["hopscope_lease_expirations_total{}"], 1);
  EXPECT_EQ(values["hopscope_items_scored_total{2,65-512,number,}"], 100);
  EXPECT_EQ(values["hopscope_items_correct_total{2,65-512,number,}"], 75);
  EXPECT_EQ(values["hopscope_store_operation_seconds{lease_units,}"], 1);
}

TEST_F(JobMetricsTest, LengthsFallIntoTheirBuckets) {
  const std::map<int, std::string> buckets = {{0, "0"},       {1, "1-64"},     {64, "1-64"},
                                              {65, "65-512"}, {512, "65-512"}, {513, "513+"},
                                              {5000, "513+"}};
  for (const auto& [added_tokens, bucket] : buckets) {
    const std::string key = absl::StrCat("hopscope_items_scored_total{1,", bucket, ",number,}");
    const double before = Values()[key];
    metrics_.OnItemsScored("number", 1, added_tokens, 1, 0);
    EXPECT_EQ(Values()[key], before + 1) << added_tokens;
  }
}

// Jobs of every kind, with names that nobody knows among them.
TEST_F(JobMetricsTest, AHundredThousandJobsAddNoSeries) {
  const size_t before = Values().size();
  for (int i = 0; i < 100'000; ++i) {
    const std::string odd = absl::StrCat("odd-", i);
    metrics_.OnUnitLeased(absl::Milliseconds(i));
    metrics_.OnAttemptEnded(i % 2 == 0 ? "completed" : odd, absl::Milliseconds(i));
    metrics_.OnUnitEnded(i % 3 == 0 ? "completed" : odd);
    metrics_.OnRetry(i % 5 == 0 ? "TIMEOUT" : odd);
    metrics_.OnItemsScored(i % 7 == 0 ? "number" : odd, i, i, 1, 1);
    metrics_.OnOperation(odd, absl::Milliseconds(1), absl::StatusCode::kOk);
  }
  EXPECT_EQ(Values().size(), before);
}

}  // namespace
}  // namespace hopscope::server

#include "common/ops/metric_table.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/counter.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace hopscope::ops {
namespace {

using ::testing::Each;
using ::testing::Pair;
using ::testing::SizeIs;

// "label=value," for each label, to the counter's value.
std::map<std::string, double> Counters(const prometheus::Registry& registry) {
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : registry.Collect()) {
    for (const prometheus::ClientMetric& metric : family.metric) {
      std::string labels;
      for (const auto& label : metric.label) labels += label.name + "=" + label.value + ",";
      values[labels] = metric.counter.value;
    }
  }
  return values;
}

class MetricTableTest : public ::testing::Test {
 protected:
  MetricTable<prometheus::Counter> MakeTable() {
    return MetricTable<prometheus::Counter>(
        prometheus::BuildCounter().Name("requests_total").Help("Requests.").Register(registry_),
        {{"method", {"Get", "List", "Watch"}}, {"code", {"OK", "other"}}});
  }

  prometheus::Registry registry_;
};

TEST_F(MetricTableTest, EverySeriesStartsAtZero) {
  MakeTable();
  const std::map<std::string, double> counters = Counters(registry_);
  EXPECT_THAT(counters, SizeIs(6));
  EXPECT_THAT(counters, Each(Pair(::testing::_, 0.0)));
  EXPECT_EQ(counters.count("code=other,method=Watch,"), 1u);
}

TEST_F(MetricTableTest, ValuesAndIndicesReachTheSameSeries) {
  const MetricTable<prometheus::Counter> table = MakeTable();
  table.For({"List", "OK"}).Increment(2);
  table.At({1, 0}).Increment(3);
  table.At({2, 1}).Increment();
  const std::map<std::string, double> counters = Counters(registry_);
  EXPECT_EQ(counters.at("code=OK,method=List,"), 5);
  EXPECT_EQ(counters.at("code=other,method=Watch,"), 1);
  EXPECT_EQ(counters.at("code=OK,method=Get,"), 0);
}

TEST_F(MetricTableTest, UnknownValuesCountAsTheLastAndAddNoSeries) {
  const MetricTable<prometheus::Counter> table = MakeTable();
  for (int i = 0; i < 1000; ++i) table.For({"Get", std::to_string(i)}).Increment();
  const std::map<std::string, double> counters = Counters(registry_);
  EXPECT_THAT(counters, SizeIs(6));
  EXPECT_EQ(counters.at("code=other,method=Get,"), 1000);
}

TEST_F(MetricTableTest, HistogramsTakeTheirBuckets) {
  const MetricTable<prometheus::Histogram> table(
      prometheus::BuildHistogram().Name("seconds").Help("Seconds.").Register(registry_),
      {{"method", {"Get", "List"}}}, prometheus::Histogram::BucketBoundaries{0.1, 1});
  table.For({"List"}).Observe(0.5);
  const std::vector<prometheus::MetricFamily> families = registry_.Collect();
  ASSERT_THAT(families, SizeIs(1));
  for (const prometheus::ClientMetric& metric : families[0].metric) {
    ASSERT_THAT(metric.histogram.bucket, SizeIs(3));
    EXPECT_EQ(metric.histogram.sample_count, metric.label[0].value == "List" ? 1u : 0u);
  }
}

}  // namespace
}  // namespace hopscope::ops

#include "server/state_gauges.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::server {
namespace {

using ::testing::IsEmpty;

// "NAME{LABEL=VALUE,...}" to the value.
std::map<std::string, double> Values(const StateGauges& gauges) {
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : gauges.Collect()) {
    for (const prometheus::ClientMetric& metric : family.metric) {
      std::string key = absl::StrCat(family.name, "{");
      for (const auto& label : metric.label)
        absl::StrAppend(&key, label.name, "=", label.value, ",");
      values[key + "}"] = metric.gauge.value;
    }
  }
  return values;
}

TEST(StateGauges, EveryStateIsThereFromZero) {
  const StateGauges gauges([] { return store::StateCounts(); });
  const std::map<std::string, double> values = Values(gauges);
  // 7 states of a job, 2 of units, 3 of workers on 3 devices.
  EXPECT_EQ(values.size(), 7u + 2u + 9u);
  for (const auto& [key, value] : values) EXPECT_EQ(value, 0) << key;
  EXPECT_EQ(values.count("hopscope_jobs{state=partially_succeeded,}"), 1u);
}

TEST(StateGauges, ShowsWhatTheStoreCounts) {
  store::StateCounts counts;
  counts.jobs = {{v1::EvalJob::STATE_RUNNING, 3}};
  counts.queued_units = 40;
  counts.leased_units = 5;
  counts.workers = {{v1::Worker::STATE_ACTIVE, "cuda", 2},
                    {v1::Worker::STATE_ACTIVE, "tpu", 1},
                    {v1::Worker::STATE_ACTIVE, "", 1}};
  const StateGauges gauges([&counts] { return counts; });
  std::map<std::string, double> values = Values(gauges);
  EXPECT_EQ(values["hopscope_jobs{state=running,}"], 3);
  EXPECT_EQ(values["hopscope_units{state=queued,}"], 40);
  EXPECT_EQ(values["hopscope_units{state=leased,}"], 5);
  EXPECT_EQ(values["hopscope_workers{state=active,device=cuda,}"], 2);
  EXPECT_EQ(values["hopscope_workers{state=active,device=other,}"], 2);
  EXPECT_EQ(values.size(), 7u + 2u + 9u);
}

TEST(StateGauges, ShowsNothingWhereTheStoreCannotBeRead) {
  const StateGauges gauges(
      []() -> absl::StatusOr<store::StateCounts> { return absl::UnavailableError("gone"); });
  EXPECT_THAT(Values(gauges), IsEmpty());
}

}  // namespace
}  // namespace hopscope::server

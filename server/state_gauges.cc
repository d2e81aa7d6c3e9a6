#include "server/state_gauges.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "common/logging.h"
#include "google/protobuf/descriptor.h"

namespace hopscope::server {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

constexpr absl::string_view kStatePrefix = "STATE_";

// "running" for STATE_RUNNING.
std::string StateLabel(const google::protobuf::EnumValueDescriptor* state) {
  return absl::AsciiStrToLower(state->name().substr(kStatePrefix.size()));
}

// Labels of every state but the unspecified one.
std::vector<std::string> StateLabels(const google::protobuf::EnumDescriptor* states) {
  std::vector<std::string> labels;
  for (int i = 0; i < states->value_count(); ++i) {
    if (states->value(i)->number() != 0) labels.push_back(StateLabel(states->value(i)));
  }
  return labels;
}

prometheus::MetricFamily Gauges(const std::string& name, const std::string& help,
                                const std::map<Labels, int64_t>& values) {
  prometheus::MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = prometheus::MetricType::Gauge;
  for (const auto& [labels, value] : values) {
    prometheus::ClientMetric metric;
    for (const auto& [label, text] : labels) metric.label.push_back({label, text});
    metric.gauge.value = static_cast<double>(value);
    family.metric.push_back(std::move(metric));
  }
  return family;
}

}  // namespace

std::vector<prometheus::MetricFamily> StateGauges::Collect() const {
  const absl::StatusOr<store::StateCounts> counts = count_();
  if (!counts.ok()) {
    common::Log(spdlog::level::warn, "states not counted", {{"error", counts.status()}});
    return {};
  }
  std::map<Labels, int64_t> jobs;
  for (const std::string& state : StateLabels(v1::EvalJob::State_descriptor())) {
    jobs[{{"state", state}}] = 0;
  }
  for (const auto& [state, count] : counts->jobs) {
    jobs[{{"state", StateLabel(v1::EvalJob::State_descriptor()->FindValueByNumber(state))}}] =
        count;
  }
  const std::map<Labels, int64_t> units = {{{{"state", "queued"}}, counts->queued_units},
                                           {{{"state", "leased"}}, counts->leased_units}};
  std::map<Labels, int64_t> workers;
  for (const std::string& state : StateLabels(v1::Worker::State_descriptor())) {
    for (const char* device : {"cpu", "cuda", "other"}) {
      workers[{{"state", state}, {"device", device}}] = 0;
    }
  }
  for (const store::StateCounts::Workers& group : counts->workers) {
    const bool known = group.device == "cpu" || group.device == "cuda";
    workers[{{"state", StateLabel(v1::Worker::State_descriptor()->FindValueByNumber(group.state))},
             {"device", known ? group.device : "other"}}] += group.count;
  }
  return {Gauges("hopscope_jobs", "Jobs by state.", jobs),
          Gauges("hopscope_units", "Units that wait for a worker or are leased.", units),
          Gauges("hopscope_workers", "Workers by state and device.", workers)};
}

}  // namespace hopscope::server

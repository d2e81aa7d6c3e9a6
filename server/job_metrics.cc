#include "server/job_metrics.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/spec/catalog.h"

namespace hopscope::server {
namespace {

using prometheus::Histogram;

// A unit takes about 10^11 floating-point operations: milliseconds on a GPU, seconds on a CPU.
const Histogram::BucketBoundaries kUnitSeconds = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                                                  2.5,  5,     10,   30,  60,   300};
// From a unit that is leased as soon as it is there to one that waits behind a long queue.
const Histogram::BucketBoundaries kWaitSeconds = {0.01, 0.1, 0.5, 1,    5,    15,
                                                  60,   300, 900, 3600, 14400};
const Histogram::BucketBoundaries kStoreSeconds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                                   0.01,   0.025,   0.05,   0.1,   0.5,    2.5};

template <class Metric>
prometheus::Family<Metric>& Register(prometheus::Registry& registry,
                                     prometheus::detail::Builder<Metric> builder, const char* name,
                                     const char* help) {
  return builder.Name(name).Help(help).Register(registry);
}

prometheus::Family<prometheus::Counter>& Counters(prometheus::Registry& registry, const char* name,
                                                  const char* help) {
  return Register(registry, prometheus::BuildCounter(), name, help);
}

prometheus::Family<Histogram>& Histograms(prometheus::Registry& registry, const char* name,
                                          const char* help) {
  return Register(registry, prometheus::BuildHistogram(), name, help);
}

std::vector<ops::LabelAxis> ItemAxes() {
  ops::LabelAxis task{"task", {}};
  ops::LabelAxis hops{"hops", {}};
  int32_t most_hops = 0;
  for (const v1::TaskCapability& capability : spec::Tasks()) {
    task.values.push_back(capability.name());
    most_hops = std::max(most_hops, capability.max_hops());
  }
  for (int32_t h = 1; h <= most_hops; ++h) hops.values.push_back(absl::StrCat(h));
  task.values.push_back("other");
  hops.values.push_back("other");
  return {task, hops, {"length_bucket", {"0", "1-64", "65-512", "513+"}}};
}

absl::string_view LengthBucket(int32_t added_tokens) {
  if (added_tokens <= 0) return "0";
  if (added_tokens <= 64) return "1-64";
  return added_tokens <= 512 ? "65-512" : "513+";
}

}  // namespace

JobMetrics::JobMetrics(prometheus::Registry& registry)
    : unit_wait_(Histograms(registry, "hopscope_unit_wait_seconds",
                            "Time that units waited before they were leased.")
                     .Add({}, kWaitSeconds)),
      unit_duration_(
          Histograms(registry, "hopscope_unit_duration_seconds",
                     "Time from the lease of a unit to the end of the attempt."),
          {{"outcome", {"completed", "failed", "handed_back", "lost", "cancelled", "other"}}},
          kUnitSeconds),
      units_completed_(Counters(registry, "hopscope_units_completed_total",
                                "Units that reached their end, by how they did."),
                       {{"outcome", {"completed", "failed", "cancelled", "other"}}}),
      unit_retries_(Counters(registry, "hopscope_unit_retries_total",
                             "Units that went back into the queue because an attempt failed."),
                    {{"reason",
                      {"WORKER_LOST", "TIMEOUT", "OUT_OF_MEMORY", "CHECKPOINT", "INTERNAL",
                       "PREEMPTED", "other"}}}),
      lease_expirations_(
          Counters(registry, "hopscope_lease_expirations_total", "Leases that ran out.").Add({})),
      items_scored_(Counters(registry, "hopscope_items_scored_total",
                             "Sequences with a result, by the tokens in front of the window."),
                    ItemAxes()),
      items_correct_(Counters(registry, "hopscope_items_correct_total",
                              "Sequences among them that were answered correctly."),
                     ItemAxes()),
      store_operations_(
          Histograms(registry, "hopscope_store_operation_seconds",
                     "Time that operations on the store took, waiting included."),
          {{"operation",
            {"cancel_job",      "count_states",     "create_job",   "delete_tokens", "drain_worker",
             "end_leases",      "end_overdue_jobs", "fetch_tokens", "find_request",  "find_tokens",
             "finish_tokens",   "forget_workers",   "get_job",      "heartbeat",     "lease_units",
             "list_jobs",       "list_results",     "lose_workers", "probe",         "read_events",
             "register_worker", "report_unit",      "store_tokens", "other"}}},
          kStoreSeconds) {}

void JobMetrics::OnUnitLeased(absl::Duration wait) {
  unit_wait_.Observe(absl::ToDoubleSeconds(wait));
}

void JobMetrics::OnAttemptEnded(absl::string_view outcome, absl::Duration duration) {
  unit_duration_.For({outcome}).Observe(absl::ToDoubleSeconds(duration));
}

void JobMetrics::OnUnitEnded(absl::string_view outcome) {
  units_completed_.For({outcome}).Increment();
}

void JobMetrics::OnRetry(absl::string_view reason) { unit_retries_.For({reason}).Increment(); }

void JobMetrics::OnLeaseExpired() { lease_expirations_.Increment(); }

void JobMetrics::OnItemsScored(absl::string_view task, int32_t hops, int32_t added_tokens,
                               int64_t items, int64_t correct) {
  const std::string hop_count = absl::StrCat(hops);
  const absl::string_view bucket = LengthBucket(added_tokens);
  items_scored_.For({task, hop_count, bucket}).Increment(static_cast<double>(items));
  items_correct_.For({task, hop_count, bucket}).Increment(static_cast<double>(correct));
}

void JobMetrics::OnOperation(absl::string_view operation, absl::Duration duration,
                             absl::StatusCode) {
  store_operations_.For({operation}).Observe(absl::ToDoubleSeconds(duration));
}

}  // namespace hopscope::server

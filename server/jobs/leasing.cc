#include "server/jobs/leasing.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/status.h"
#include "server/jobs/job_offer.h"

namespace hopscope::jobs {
namespace {

// Jobs of a tenant that are looked at together.
constexpr int kJobBatch = 16;

// The jobs of one tenant at one priority, oldest first, as a stream of units for one worker.
class TenantQueue {
 public:
  TenantQueue(store::QueueHead head, int64_t leased_units)
      : leased_units(leased_units), head_(std::move(head)) {}

  // Leases the next unit. False: the tenant has none for this worker.
  absl::StatusOr<bool> LeaseNext(const OfferContext& context, v1::LeaseUnitsResponse& response) {
    for (;;) {
      if (offer_ != nullptr) {
        HOPSCOPE_ASSIGN_OR_RETURN(const bool leased, offer_->LeaseNext(response));
        if (leased) return true;
        HOPSCOPE_RETURN_IF_ERROR(Close());
      }
      HOPSCOPE_ASSIGN_OR_RETURN(std::optional<store::JobRow> job, NextJob(context.transaction));
      if (!job.has_value()) return false;
      HOPSCOPE_ASSIGN_OR_RETURN(offer_, JobOffer::Make(context, *std::move(job)));
    }
  }

  // Writes what is open.
  absl::Status Close() {
    if (offer_ == nullptr) return absl::OkStatus();
    return std::exchange(offer_, nullptr)->Close();
  }

  const std::string& tenant() const { return head_.tenant; }
  int64_t leased_units;  // of the tenant, at all priorities

 private:
  absl::StatusOr<std::optional<store::JobRow>> NextJob(store::Transaction& transaction) {
    if (jobs_.empty() && !exhausted_) {
      HOPSCOPE_ASSIGN_OR_RETURN(std::vector<store::JobRow> jobs,
                                transaction.QueuedJobs(head_, last_, kJobBatch));
      exhausted_ = jobs.size() < kJobBatch;
      jobs_.assign(std::make_move_iterator(jobs.begin()), std::make_move_iterator(jobs.end()));
    }
    if (jobs_.empty()) return std::nullopt;
    store::JobRow job = std::move(jobs_.front());
    jobs_.pop_front();
    last_ = store::JobCursor{.create_time = job.create_time, .key = job.key};
    return job;
  }

  store::QueueHead head_;
  std::deque<store::JobRow> jobs_;
  bool exhausted_ = false;
  std::optional<store::JobCursor> last_;
  std::unique_ptr<JobOffer> offer_;
};

}  // namespace

absl::Status LeaseToWorker(store::Transaction& transaction, PlanCache& plans, Effects& effects,
                           const store::WorkerRow& worker, const v1::LeaseUnitsRequest& request,
                           int max_units, absl::Duration lease_duration, absl::Time now,
                           v1::LeaseUnitsResponse& response) {
  HOPSCOPE_ASSIGN_OR_RETURN(const std::vector<store::QueueHead> heads, transaction.QueueHeads());
  if (heads.empty()) return absl::OkStatus();
  HOPSCOPE_ASSIGN_OR_RETURN(const std::vector<store::TenantLeases> leases,
                            transaction.LeasesByTenant());
  absl::flat_hash_map<std::string, int64_t> leased_units;
  for (const store::TenantLeases& tenant : leases) {
    leased_units[tenant.tenant] = tenant.leased_units;
  }
  absl::flat_hash_map<std::string, int> loaded_digests;
  for (const std::string& digest : request.loaded_digests()) {
    loaded_digests.emplace(digest, static_cast<int>(loaded_digests.size()));
  }
  const OfferContext context{.transaction = transaction,
                             .plans = plans,
                             .effects = effects,
                             .worker = worker,
                             .loaded_digests = loaded_digests,
                             .lease_duration = lease_duration,
                             .now = now};

  for (auto head = heads.begin(); head != heads.end() && response.leases_size() < max_units;) {
    std::vector<TenantQueue> tenants;
    for (const int32_t priority = head->priority; head != heads.end() && head->priority == priority;
         ++head) {
      tenants.emplace_back(*head, leased_units[head->tenant]);
    }
    while (!tenants.empty() && response.leases_size() < max_units) {
      const auto least = std::min_element(
          tenants.begin(), tenants.end(), [](const TenantQueue& a, const TenantQueue& b) {
            return a.leased_units < b.leased_units;  // ties: by tenant, as the heads are
          });
      HOPSCOPE_ASSIGN_OR_RETURN(const bool leased, least->LeaseNext(context, response));
      if (leased) {
        leased_units[least->tenant()] = ++least->leased_units;
      } else {
        tenants.erase(least);
      }
    }
    for (TenantQueue& tenant : tenants) HOPSCOPE_RETURN_IF_ERROR(tenant.Close());
  }
  return absl::OkStatus();
}

}  // namespace hopscope::jobs

// The units of one job that one worker may have, one after another in the order of leasing.h.
#ifndef HOPSCOPE_SERVER_JOBS_JOB_OFFER_H_
#define HOPSCOPE_SERVER_JOBS_JOB_OFFER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "hopscope/v1/dispatch.pb.h"
#include "server/jobs/effects.h"
#include "server/jobs/job_edit.h"
#include "server/jobs/plan_cache.h"
#include "server/store/store.h"

namespace hopscope::jobs {

// What all offers of one call share. Everything must outlive the offers.
struct OfferContext {
  store::Transaction& transaction;
  PlanCache& plans;
  Effects& effects;
  const store::WorkerRow& worker;
  const absl::flat_hash_map<std::string, int>& loaded_digests;  // to rank: 0 was used last
  absl::Duration lease_duration;
  absl::Time now;
};

class JobOffer {
 public:
  static absl::StatusOr<std::unique_ptr<JobOffer>> Make(const OfferContext& context,
                                                        store::JobRow job);

  // Leases the next unit and adds it to the response. False: there is none.
  absl::StatusOr<bool> LeaseNext(v1::LeaseUnitsResponse& response);

  // Writes the job, where anything was leased. To be called once, last.
  absl::Status Close();

 private:
  // Where the next unit comes from, in this order.
  enum class Stage { kRetries, kLoaded, kPlanned, kOwnRetries, kDone };

  JobOffer(const OfferContext& context, store::JobRow job,
           std::shared_ptr<const store::JobPlanRow> plan);

  // Each leases one unit, or returns false where its stage has no more.
  absl::StatusOr<bool> LeaseRetry(v1::LeaseUnitsResponse& response);
  absl::StatusOr<bool> LeaseLoaded(v1::LeaseUnitsResponse& response);
  absl::StatusOr<bool> LeasePlanned(std::optional<int32_t> checkpoint,
                                    v1::LeaseUnitsResponse& response);
  absl::StatusOr<bool> LeaseOwnRetry(v1::LeaseUnitsResponse& response);

  absl::Status Lease(store::UnitRow unit, bool is_new, const store::CellRow& cell,
                     v1::LeaseUnitsResponse& response);
  // Whether this worker failed the unit, and some other one could still try it.
  absl::StatusOr<bool> BelongsToOthers(const store::UnitRow& unit, const store::CellRow& cell);
  bool Fits(const store::CellRow& cell) const {
    return task_fits_[cell.task] && checkpoint_fits_[cell.checkpoint];
  }
  // Writes the open cell.
  absl::Status CloseCell();

  const OfferContext context_;
  const std::shared_ptr<const store::JobPlanRow> plan_;
  JobEdit edit_;
  bool leased_any_ = false;
  Stage stage_ = Stage::kRetries;
  std::vector<bool> task_fits_;
  std::vector<bool> checkpoint_fits_;

  // kRetries
  std::deque<store::UnitRow> retries_;
  std::optional<store::UnitKey> last_retry_;
  bool retries_exhausted_ = false;
  std::deque<store::UnitRow> own_retries_;  // put off, since the worker failed them itself
  std::optional<std::vector<store::WorkerRow>> workers_;

  // kLoaded
  std::deque<int32_t> loaded_checkpoints_;

  // kLoaded and kPlanned
  std::optional<store::CellRow> cell_;  // whose units are given now; not yet written
  int32_t next_cell_ = 0;
};

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_JOB_OFFER_H_

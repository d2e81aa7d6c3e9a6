// Durable state of jobs, units, attempts, events, results and workers. One interface; SQLite (and
// later PostgreSQL) behind it. The store is the authority: nothing that matters lives only in the
// memory of a server.
//
// Contract
// 1. Write() runs its body as one transaction, alone as far as the body can tell (serialisable),
// and returns OK only
//    once what it wrote is durable. Where the body returns an error, or the store fails, nothing of
//    it is kept.
// 2. A body may run more than once (after a conflict with another server, say), on any thread, and
// others may wait for
//    it: it must reset what it captured, must not block, and must not call the Store.
// 3. Read() sees one consistent state, no older than the last Write() that returned before it
// began.
// 4. A store that cannot be reached or written (a full disk, an I/O error) answers UNAVAILABLE with
// reason
//    STORE_UNAVAILABLE, keeps what it had, and works again when the cause is gone. A damaged one
//    answers DATA_LOSS with STORE_CORRUPT.
// Thread-safe, except that a Transaction belongs to the body that it was given to.
#ifndef HOPSCOPE_SERVER_STORE_STORE_H_
#define HOPSCOPE_SERVER_STORE_STORE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/store/rows.h"

namespace hopscope::store {

// What a transaction can look at. "Leasable" and "leased" are as in the rows: CellRow::leasable(),
// AttemptRow with a lease_expiry, JobRow with queued_units in state PENDING or RUNNING.
class ReadTransaction {
 public:
  virtual ~ReadTransaction() = default;

  // ---- jobs
  virtual absl::StatusOr<std::optional<JobRow>> FindJob(absl::string_view id) = 0;
  virtual absl::StatusOr<std::optional<JobRow>> GetJob(JobKey key) = 0;
  // The job that a tenant created with a request id.
  virtual absl::StatusOr<std::optional<JobRow>> FindRequest(absl::string_view tenant,
                                                            absl::string_view request_id) = 0;
  // NOT_FOUND where there is no such job.
  virtual absl::StatusOr<JobPlanRow> GetJobPlan(JobKey key) = 0;
  virtual absl::StatusOr<std::vector<JobRow>> ListJobs(const JobQuery& query) = 0;
  // Where there are leasable jobs: highest priority first, then by tenant.
  virtual absl::StatusOr<std::vector<QueueHead>> QueueHeads() = 0;
  // Leasable jobs of one head, oldest first (by create_time, key).
  virtual absl::StatusOr<std::vector<JobRow>> QueuedJobs(const QueueHead& head,
                                                         const std::optional<JobCursor>& after,
                                                         int limit) = 0;
  // Units leased now, by tenant; tenants without any are left out.
  virtual absl::StatusOr<std::vector<TenantLeases>> LeasesByTenant() = 0;
  // Unfinished jobs with deadline <= now.
  virtual absl::StatusOr<std::vector<JobRow>> JobsPastDeadline(absl::Time now, int limit) = 0;
  virtual absl::StatusOr<StateCounts> CountStates() = 0;

  // ---- cells
  virtual absl::StatusOr<std::optional<CellRow>> GetCell(JobKey job, int32_t cell) = 0;
  // Leasable cells with index >= from_cell in order; with `checkpoint`, those of that checkpoint
  // alone.
  virtual absl::StatusOr<std::vector<CellRow>> LeasableCells(JobKey job,
                                                             std::optional<int32_t> checkpoint,
                                                             int32_t from_cell, int limit) = 0;
  // Completed and failed cells with index >= from_cell in order.
  virtual absl::StatusOr<std::vector<CellRow>> FinishedCells(JobKey job, int32_t from_cell,
                                                             int limit) = 0;
  // The merge of the units [0, merged_units); empty where there are none.
  virtual absl::StatusOr<v1::UnitResult> GetMerge(JobKey job, int32_t cell) = 0;

  // ---- units and attempts
  virtual absl::StatusOr<std::optional<UnitRow>> GetUnit(const UnitKey& key) = 0;
  // Units with a row that wait, in order of (cell, unit), after `after` where it is set.
  virtual absl::StatusOr<std::vector<UnitRow>> QueuedUnits(JobKey job,
                                                           const std::optional<UnitKey>& after,
                                                           int limit) = 0;
  // Results of completed units that are not merged yet, from first_unit on, in order.
  struct UnmergedResult {
    int64_t unit = 0;
    v1::UnitResult result;
  };
  virtual absl::StatusOr<std::vector<UnmergedResult>> UnmergedResults(JobKey job, int32_t cell,
                                                                      int64_t first_unit,
                                                                      int limit) = 0;
  virtual absl::StatusOr<std::optional<AttemptRow>> GetAttempt(const UnitKey& unit,
                                                               int32_t number) = 0;
  // Oldest first.
  virtual absl::StatusOr<std::vector<AttemptRow>> ListAttempts(const UnitKey& unit) = 0;
  virtual absl::StatusOr<std::vector<AttemptRow>> LeasesOfWorker(absl::string_view worker) = 0;
  // With `cell`, those of that cell alone.
  virtual absl::StatusOr<std::vector<AttemptRow>> LeasesOfJob(JobKey job,
                                                              std::optional<int32_t> cell) = 0;
  // Attempts with lease_expiry <= now.
  virtual absl::StatusOr<std::vector<AttemptRow>> ExpiredLeases(absl::Time now, int limit) = 0;
  // Parts of an attempt's report that are there, by part number.
  struct ReportPart {
    int32_t part = 0;
    int32_t part_count = 0;
    std::string bytes;
  };
  virtual absl::StatusOr<std::vector<ReportPart>> ReportParts(const UnitKey& unit,
                                                              int32_t attempt) = 0;

  // ---- events: with `sequence` set, `job` not
  // In order; stops after the event that reaches max_bytes of serialised size.
  virtual absl::StatusOr<std::vector<v1::EvalEvent>> ListEvents(JobKey job, int64_t after_sequence,
                                                                int limit, int64_t max_bytes) = 0;

  // ---- uploaded sequences: their bytes in chunks of kTokensChunkBytes, the last one shorter
  static constexpr int64_t kTokensChunkBytes = 1 << 20;
  // Complete ones; without `tenant`, those of any tenant.
  virtual absl::StatusOr<std::optional<TokensRow>> FindTokens(
      std::optional<absl::string_view> tenant, absl::string_view digest) = 0;
  // NOT_FOUND where there is no such chunk, or no index.
  virtual absl::StatusOr<std::string> GetTokensChunk(TokensKey key, int64_t chunk) = 0;
  virtual absl::StatusOr<std::string> GetTokensIndex(TokensKey key) = 0;
  // Bytes of a tenant's complete sequences, or of its uploads that go on.
  virtual absl::StatusOr<int64_t> SumTokensBytes(absl::string_view tenant, bool complete) = 0;

  // ---- workers
  virtual absl::StatusOr<std::optional<WorkerRow>> GetWorker(absl::string_view id) = 0;
  // By id.
  virtual absl::StatusOr<std::vector<WorkerRow>> ListWorkers() = 0;
  // Workers in state ACTIVE or DRAINING with heartbeat_time <= time.
  virtual absl::StatusOr<std::vector<WorkerRow>> SilentWorkers(absl::Time time, int limit) = 0;
};

// What a transaction can change. Updates need the row to be there and leave what identifies it
// alone.
class Transaction : public ReadTransaction {
 public:
  // Returns the key; row.key is ignored. Labels and the request id are taken from the plan.
  virtual absl::StatusOr<JobKey> InsertJob(const JobRow& row, const JobPlanRow& plan) = 0;
  // Writes state, times, counts, last_sequence, kinds and failure.
  virtual absl::Status UpdateJob(const JobRow& row) = 0;

  virtual absl::Status InsertCells(absl::Span<const CellRow> cells) = 0;
  // Writes the fields from `state` on.
  virtual absl::Status UpdateCell(const CellRow& row) = 0;
  virtual absl::Status PutMerge(JobKey job, int32_t cell, const v1::UnitResult& merge) = 0;

  virtual absl::Status InsertUnit(const UnitRow& row) = 0;
  virtual absl::Status UpdateUnit(const UnitRow& row) = 0;
  // Makes every queued unit with a row CANCELLED; with `cell`, those of that cell alone. Returns
  // how many those were.
  virtual absl::StatusOr<int64_t> CancelQueuedUnits(JobKey job, std::optional<int32_t> cell) = 0;
  virtual absl::Status PutUnmergedResult(const UnitKey& unit, const v1::UnitResult& result) = 0;
  // Drops those of units < before_unit.
  virtual absl::Status DeleteUnmergedResults(JobKey job, int32_t cell, int64_t before_unit) = 0;

  virtual absl::Status InsertAttempt(const AttemptRow& row) = 0;
  // Writes state, end_time, lease_expiry and failure.
  virtual absl::Status UpdateAttempt(const AttemptRow& row) = 0;
  // Keeps the first of two parts with the same number.
  virtual absl::Status PutReportPart(const UnitKey& unit, int32_t attempt,
                                     const ReportPart& part) = 0;
  // Without `attempt`, those of every attempt at the unit.
  virtual absl::Status DeleteReportParts(const UnitKey& unit, std::optional<int32_t> attempt) = 0;

  // event.sequence must be new within the job.
  virtual absl::Status InsertEvent(JobKey job, const v1::EvalEvent& event) = 0;

  // Returns the key; row.key is ignored.
  virtual absl::StatusOr<TokensKey> InsertTokens(const TokensRow& row) = 0;
  // Writes digest, bytes, sequences and use_time.
  virtual absl::Status UpdateTokens(const TokensRow& row) = 0;
  virtual absl::Status PutTokensChunk(TokensKey key, int64_t chunk, absl::string_view bytes) = 0;
  virtual absl::Status PutTokensIndex(TokensKey key, absl::string_view index) = 0;
  virtual absl::Status DeleteTokens(TokensKey key) = 0;
  // Keeps sequences for as long as there is the job.
  virtual absl::Status LinkTokens(JobKey job, TokensKey key) = 0;
  // Deletes complete sequences that no job is linked to with use_time <= unused_since, and uploads
  // that went on with use_time <= stalled_since; at most `limit`. Returns how many those were.
  virtual absl::StatusOr<int64_t> DeleteUnusedTokens(absl::Time unused_since,
                                                     absl::Time stalled_since, int limit) = 0;

  // Inserts or replaces.
  virtual absl::Status PutWorker(const WorkerRow& row) = 0;
  // Forgets workers in state LOST with heartbeat_time <= time.
  virtual absl::Status DeleteLostWorkers(absl::Time time) = 0;
};

class Store {
 public:
  using WriteBody = absl::FunctionRef<absl::Status(Transaction&)>;
  using ReadBody = absl::FunctionRef<absl::Status(ReadTransaction&)>;

  virtual ~Store() = default;

  // Both block. `operation` names the operation for metrics: one of a small fixed set, such as
  // "lease_units".
  virtual absl::Status Write(absl::string_view operation, WriteBody body) = 0;
  virtual absl::Status Read(absl::string_view operation, ReadBody body) = 0;

  // Whether the store can be written durably now, found out by doing so.
  virtual absl::Status Probe() = 0;
};

// Hears how long operations took. Calls come from many threads at once and must not block.
class StoreObserver {
 public:
  virtual ~StoreObserver() = default;
  virtual void OnOperation(absl::string_view operation, absl::Duration duration,
                           absl::StatusCode code) = 0;
};

}  // namespace hopscope::store

#endif  // HOPSCOPE_SERVER_STORE_STORE_H_

// A transaction of the SQLite store: the typed operations of store.h as SQL on one connection.
#ifndef HOPSCOPE_SERVER_STORE_SQLITE_TRANSACTION_H_
#define HOPSCOPE_SERVER_STORE_SQLITE_TRANSACTION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/store/sqlite_connection.h"
#include "server/store/store.h"

namespace hopscope::store {

// Beginning and ending the transaction is the owner's affair (sqlite_store.cc).
class SqliteTransaction final : public Transaction {
 public:
  // The connection must outlive the transaction.
  explicit SqliteTransaction(SqliteConnection* connection) : connection_(*connection) {}

  absl::StatusOr<std::optional<JobRow>> FindJob(absl::string_view id) override;
  absl::StatusOr<std::optional<JobRow>> GetJob(JobKey key) override;
  absl::StatusOr<std::optional<JobRow>> FindRequest(absl::string_view tenant,
                                                    absl::string_view request_id) override;
  absl::StatusOr<JobPlanRow> GetJobPlan(JobKey key) override;
  absl::StatusOr<std::vector<JobRow>> ListJobs(const JobQuery& query) override;
  absl::StatusOr<std::vector<QueueHead>> QueueHeads() override;
  absl::StatusOr<std::vector<JobRow>> QueuedJobs(const QueueHead& head,
                                                 const std::optional<JobCursor>& after,
                                                 int limit) override;
  absl::StatusOr<std::vector<TenantLeases>> LeasesByTenant() override;
  absl::StatusOr<std::vector<JobRow>> JobsPastDeadline(absl::Time now, int limit) override;
  absl::StatusOr<StateCounts> CountStates() override;
  absl::StatusOr<std::optional<CellRow>> GetCell(JobKey job, int32_t cell) override;
  absl::StatusOr<std::vector<CellRow>> LeasableCells(JobKey job, std::optional<int32_t> checkpoint,
                                                     int32_t from_cell, int limit) override;
  absl::StatusOr<std::vector<CellRow>> FinishedCells(JobKey job, int32_t from_cell,
                                                     int limit) override;
  absl::StatusOr<v1::UnitResult> GetMerge(JobKey job, int32_t cell) override;
  absl::StatusOr<std::optional<UnitRow>> GetUnit(const UnitKey& key) override;
  absl::StatusOr<std::vector<UnitRow>> QueuedUnits(JobKey job, const std::optional<UnitKey>& after,
                                                   int limit) override;
  absl::StatusOr<std::vector<UnmergedResult>> UnmergedResults(JobKey job, int32_t cell,
                                                              int64_t first_unit,
                                                              int limit) override;
  absl::StatusOr<std::optional<AttemptRow>> GetAttempt(const UnitKey& unit,
                                                       int32_t number) override;
  absl::StatusOr<std::vector<AttemptRow>> ListAttempts(const UnitKey& unit) override;
  absl::StatusOr<std::vector<AttemptRow>> LeasesOfWorker(absl::string_view worker) override;
  absl::StatusOr<std::vector<AttemptRow>> LeasesOfJob(JobKey job,
                                                      std::optional<int32_t> cell) override;
  absl::StatusOr<std::vector<AttemptRow>> ExpiredLeases(absl::Time now, int limit) override;
  absl::StatusOr<std::vector<ReportPart>> ReportParts(const UnitKey& unit,
                                                      int32_t attempt) override;
  absl::StatusOr<std::vector<v1::EvalEvent>> ListEvents(JobKey job, int64_t after_sequence,
                                                        int limit, int64_t max_bytes) override;
  absl::StatusOr<std::optional<TokensRow>> FindTokens(std::optional<absl::string_view> tenant,
                                                      absl::string_view digest) override;
  absl::StatusOr<std::string> GetTokensChunk(TokensKey key, int64_t chunk) override;
  absl::StatusOr<std::string> GetTokensIndex(TokensKey key) override;
  absl::StatusOr<int64_t> SumTokensBytes(absl::string_view tenant, bool complete) override;
  absl::StatusOr<std::optional<WorkerRow>> GetWorker(absl::string_view id) override;
  absl::StatusOr<std::vector<WorkerRow>> ListWorkers() override;
  absl::StatusOr<std::vector<WorkerRow>> SilentWorkers(absl::Time time, int limit) override;
  absl::StatusOr<JobKey> InsertJob(const JobRow& row, const JobPlanRow& plan) override;
  absl::Status UpdateJob(const JobRow& row) override;
  absl::Status InsertCells(absl::Span<const CellRow> cells) override;
  absl::Status UpdateCell(const CellRow& row) override;
  absl::Status PutMerge(JobKey job, int32_t cell, const v1::UnitResult& merge) override;
  absl::Status InsertUnit(const UnitRow& row) override;
  absl::Status UpdateUnit(const UnitRow& row) override;
  absl::StatusOr<int64_t> CancelQueuedUnits(JobKey job, std::optional<int32_t> cell) override;
  absl::Status PutUnmergedResult(const UnitKey& unit, const v1::UnitResult& result) override;
  absl::Status DeleteUnmergedResults(JobKey job, int32_t cell, int64_t before_unit) override;
  absl::Status InsertAttempt(const AttemptRow& row) override;
  absl::Status UpdateAttempt(const AttemptRow& row) override;
  absl::Status PutReportPart(const UnitKey& unit, int32_t attempt, const ReportPart& part) override;
  absl::Status DeleteReportParts(const UnitKey& unit, std::optional<int32_t> attempt) override;
  absl::Status InsertEvent(JobKey job, const v1::EvalEvent& event) override;
  absl::StatusOr<TokensKey> InsertTokens(const TokensRow& row) override;
  absl::Status UpdateTokens(const TokensRow& row) override;
  absl::Status PutTokensChunk(TokensKey key, int64_t chunk, absl::string_view bytes) override;
  absl::Status PutTokensIndex(TokensKey key, absl::string_view index) override;
  absl::Status DeleteTokens(TokensKey key) override;
  absl::Status LinkTokens(JobKey job, TokensKey key) override;
  absl::StatusOr<int64_t> DeleteUnusedTokens(absl::Time unused_since, absl::Time stalled_since,
                                             int limit) override;
  absl::Status PutWorker(const WorkerRow& row) override;
  absl::Status DeleteLostWorkers(absl::Time time) override;

 private:
  SqliteConnection& connection_;
};

}  // namespace hopscope::store

#endif  // HOPSCOPE_SERVER_STORE_SQLITE_TRANSACTION_H_

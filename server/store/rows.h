// The rows of the store, as plain values. What a row means to a job is decided in server/jobs; the
// store only keeps it.
//
// Times have a resolution of one microsecond.
#ifndef HOPSCOPE_SERVER_STORE_ROWS_H_
#define HOPSCOPE_SERVER_STORE_ROWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "hopscope/v1/admin.pb.h"
#include "hopscope/v1/dispatch.pb.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::store {

// Identifies a job within one store; given by InsertJob, ascending, never used twice.
using JobKey = int64_t;

// The part of a job that changes while it runs: small, since every report rewrites it.
struct JobRow {
  JobKey key = 0;
  std::string id;  // "jobs/{id}" without its prefix; unique
  std::string tenant;
  v1::EvalJob::State state = v1::EvalJob::STATE_PENDING;
  int32_t priority = 0;
  absl::Time create_time;
  std::optional<absl::Time> start_time;
  std::optional<absl::Time> end_time;
  std::optional<absl::Time> deadline;
  v1::JobTotals totals;
  int64_t queued_units = 0;  // may be leased now, whether they have a row or not
  int64_t leased_units = 0;
  int64_t last_sequence = 0;  // of its durable events
  std::string pinned_kind;    // WorkerDescription.kind that alone gets units; empty: any
  std::vector<std::string> worker_kinds;  // UnitResult.kind of the results, in order of appearance
  v1::Failure failure;                    // empty reason: none
};

// A checkpoint of a job, with what dispatch needs to know of it.
struct CheckpointRow {
  v1::CheckpointRef ref;
  std::string family;
  int64_t weight_bytes = 0;
  int32_t layers = 0;
  int32_t heads = 0;
};

// How a task's cells of one checkpoint are cut where their items differ in cost: unit u holds the
// items [ends[u - 1], ends[u]), the first one those from 0 on.
struct CutRow {
  int32_t task = 0;        // index into spec.tasks
  int32_t checkpoint = 0;  // index into JobPlanRow.checkpoints
  std::vector<int64_t> ends;
};

// The part of a job that never changes.
struct JobPlanRow {
  v1::EvalJobSpec spec;  // normalised
  std::vector<CheckpointRow> checkpoints;
  std::vector<CutRow> cuts;  // by (task, checkpoint)
  v1::PlanEstimate estimate;
  std::vector<std::string> warnings;
  std::string request_id;  // empty: none; unique within the tenant
  std::string traceparent;
};

// A cell and the units that it is cut into: unit u holds the items [u * items_per_unit, min(items,
// (u + 1) * items_per_unit)), or where cut_units is set, those that the plan's cut says. Units from
// next_unit on were never leased and have no row of their own.
struct CellRow {
  JobKey job = 0;
  int32_t index = 0;
  int32_t checkpoint = 0;  // index into JobPlanRow.checkpoints
  int32_t task = 0;        // index into spec.tasks
  int32_t hops = 0;
  int32_t added_tokens = 0;
  int64_t seed = 0;
  int64_t items = 0;
  int64_t items_per_unit = 1;
  int64_t cut_units = 0;  // number of units of the plan's cut; 0: it has none
  double flops_per_item = 0;

  v1::CellResult::State state = v1::CellResult::STATE_RUNNING;
  int64_t next_unit = 0;
  int64_t units_completed = 0;
  int64_t items_completed = 0;  // of completed units, failed items included
  int64_t merged_units = 0;     // units [0, merged_units) are folded into the cell's merge
  // Of the merged units: items with a result, items without one, and items answered correctly.
  int64_t scored_items = 0;
  int64_t failed_items = 0;
  int64_t correct_items = 0;
  int64_t unlabelled_items = 0;  // of scored_items
  v1::Failure failure;

  int64_t units() const {
    return cut_units > 0 ? cut_units : (items + items_per_unit - 1) / items_per_unit;
  }
  bool leasable() const { return state == v1::CellResult::STATE_RUNNING && next_unit < units(); }
};

struct UnitKey {
  JobKey job = 0;
  int32_t cell = 0;
  int64_t unit = 0;

  friend bool operator==(const UnitKey& a, const UnitKey& b) {
    return std::tie(a.job, a.cell, a.unit) == std::tie(b.job, b.cell, b.unit);
  }
};

// A unit that was leased at least once.
struct UnitRow {
  UnitKey key;
  v1::Unit::State state = v1::Unit::STATE_LEASED;
  int32_t attempts = 0;         // number of the newest one
  int32_t failed_attempts = 0;  // those that count towards the limit
  absl::Time queued_time;       // since when it waits, or waited before its newest attempt
};

enum class AttemptState {
  kLeased = 1,
  kCompleted = 2,   // its result was taken
  kFailed = 3,      // reported a failure, or its result was not plausible
  kHandedBack = 4,  // given back by the worker
  kLost = 5,        // the lease ran out; a late result may still be taken
  kCancelled = 6,   // stopped by the server; nothing that it reports is taken
};

struct AttemptRow {
  UnitKey unit;
  int32_t number = 0;  // from 1
  int64_t nonce =
      0;  // part of the attempt id: tells it from one of the same number in a restored store
  std::string worker;
  AttemptState state = AttemptState::kLeased;
  absl::Time start_time;
  std::optional<absl::Time> end_time;
  std::optional<absl::Time> lease_expiry;  // set while it holds the unit's lease
  v1::Failure failure;                     // empty reason: none
};

// Identifies uploaded sequences within one store; never used twice.
using TokensKey = int64_t;

// Sequences that were uploaded, or are being uploaded.
struct TokensRow {
  TokensKey key = 0;
  std::string tenant;
  std::string digest;  // unique within the tenant; empty: the upload goes on
  int64_t bytes = 0;
  int64_t sequences = 0;
  absl::Time use_time;  // of the last upload, piece of an upload, or new job with them
};

struct WorkerRow {
  std::string id;  // "workers/{id}"
  v1::WorkerDescription description;
  v1::Worker::State state = v1::Worker::STATE_ACTIVE;
  absl::Time register_time;
  absl::Time heartbeat_time;
  bool drain_wish = false;  // an operator asked it to drain
};

// A place in the list of jobs by (create_time, key).
struct JobCursor {
  absl::Time create_time;
  JobKey key = 0;
};

// Selects jobs. Conditions are joined by AND.
struct JobQuery {
  std::optional<v1::EvalJob::State> state;
  std::vector<std::pair<std::string, std::string>> labels;
  std::optional<absl::Time> created_from;    // create_time >= this
  std::optional<absl::Time> created_before;  // create_time < this
  bool newest_first = true;
  std::optional<JobCursor> after;  // in the order of the list
  int limit = 50;
};

// A priority of a tenant at which jobs have units to lease.
struct QueueHead {
  int32_t priority = 0;
  std::string tenant;
};

struct TenantLeases {
  std::string tenant;
  int64_t leased_units = 0;
};

// For gauges.
struct StateCounts {
  std::vector<std::pair<v1::EvalJob::State, int64_t>> jobs;
  int64_t queued_units = 0;
  int64_t leased_units = 0;
  struct Workers {
    v1::Worker::State state = v1::Worker::STATE_UNSPECIFIED;
    std::string device;
    int64_t count = 0;
  };
  std::vector<Workers> workers;
};

}  // namespace hopscope::store

#endif  // HOPSCOPE_SERVER_STORE_ROWS_H_

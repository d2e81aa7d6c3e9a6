#include "server/store/testing/store_suite.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "gmock/gmock.h"

namespace hopscope::store::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const absl::Time kStart = absl::FromUnixMicros(1'800'000'000'123'456);

// Reads one value in a transaction of its own.
template <typename Query>
auto Get(Store& store, const Query& query) {
  std::decay_t<decltype(*query(std::declval<ReadTransaction&>()))> value;
  const absl::Status status = store.Read("test", [&](ReadTransaction& transaction) -> absl::Status {
    auto found = query(transaction);
    if (!found.ok()) return found.status();
    value = *std::move(found);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return value;
}

JobRow GetJob(Store& store, JobKey key) {
  const auto job = Get(store, [&](ReadTransaction& t) { return t.GetJob(key); });
  EXPECT_TRUE(job.has_value());
  return job.value_or(JobRow());
}

JobKey Insert(Store& store, const JobRow& row, const JobPlanRow& plan = MakeJobPlanRow()) {
  JobKey key = 0;
  const absl::Status status = store.Write("test", [&](Transaction& t) -> absl::Status {
    HOPSCOPE_ASSIGN_OR_RETURN(key, t.InsertJob(row, plan));
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return key;
}

// A job with one cell.
JobKey InsertWithCell(Store& store, const std::string& id = "job") {
  const JobKey key = Insert(store, MakeJobRow(id));
  const absl::Status status =
      store.Write("test", [&](Transaction& t) { return t.InsertCells({MakeCellRow(key, 0)}); });
  EXPECT_TRUE(status.ok()) << status;
  return key;
}

std::vector<std::string> Ids(const std::vector<JobRow>& jobs) {
  std::vector<std::string> ids;
  for (const JobRow& job : jobs) ids.push_back(job.id);
  return ids;
}

UnitRow MakeUnit(JobKey job, int32_t cell, int64_t unit, v1::Unit::State state) {
  UnitRow row;
  row.key = {.job = job, .cell = cell, .unit = unit};
  row.state = state;
  row.attempts = 1;
  row.queued_time = kStart;
  return row;
}

AttemptRow MakeAttempt(const UnitKey& unit, const std::string& worker, absl::Time expiry) {
  AttemptRow row;
  row.unit = unit;
  row.number = 1;
  row.nonce = 0x7fff'ffff'ffff'ffff;
  row.worker = worker;
  row.start_time = kStart;
  row.lease_expiry = expiry;
  return row;
}

}  // namespace

JobRow MakeJobRow(const std::string& id) {
  JobRow row;
  row.id = id;
  row.tenant = "tenant";
  row.priority = -3;
  row.create_time = kStart;
  row.deadline = kStart + absl::Hours(1);
  row.totals.set_cells(2);
  row.totals.set_units(20);
  row.totals.set_items(200);
  row.queued_units = 20;
  row.last_sequence = 1;
  return row;
}

JobPlanRow MakeJobPlanRow() {
  JobPlanRow plan;
  plan.spec.set_name("a name");
  plan.spec.add_tasks()->set_task("number");
  plan.traceparent = "00-1-2-01";
  plan.warnings = {"first", "second\nwith a line \"break\""};
  plan.estimate.set_flops(1.5e12);
  CheckpointRow checkpoint;
  checkpoint.ref.set_name("models/a");
  checkpoint.ref.set_digest("sha256:0");
  checkpoint.family = "gptj";
  checkpoint.weight_bytes = int64_t{1} << 40;
  checkpoint.layers = 12;
  checkpoint.heads = 3;
  plan.checkpoints.push_back(checkpoint);
  checkpoint.ref.set_name("models/b");
  plan.checkpoints.push_back(checkpoint);
  return plan;
}

CellRow MakeCellRow(JobKey job, int32_t index) {
  CellRow cell;
  cell.job = job;
  cell.index = index;
  cell.checkpoint = index % 2;
  cell.task = 0;
  cell.hops = 4;
  cell.added_tokens = 850;
  cell.seed = -42;
  cell.items = 95;
  cell.items_per_unit = 10;
  cell.flops_per_item = 1.25e9;
  return cell;
}

void StoreSuite::Write(Store::WriteBody body) {
  const absl::Status status = store().Write("test", body);
  ASSERT_TRUE(status.ok()) << status;
}

void StoreSuite::Read(Store::ReadBody body) {
  const absl::Status status = store().Read("test", body);
  ASSERT_TRUE(status.ok()) << status;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreSuite);

TEST_P(StoreSuite, AJobComesBackAsItWasStored) {
  JobRow row = MakeJobRow("one");
  JobPlanRow plan = MakeJobPlanRow();
  plan.request_id = "request";
  row.key = Insert(store(), row, plan);
  row.state = v1::EvalJob::STATE_RUNNING;
  row.start_time = kStart + absl::Microseconds(1);
  row.end_time = kStart + absl::Seconds(2);
  row.totals.set_cells_completed(1);
  row.totals.set_cells_failed(2);
  row.totals.set_units_completed(3);
  row.totals.set_units_failed(4);
  row.totals.set_items_completed(5);
  row.totals.set_items_failed(6);
  row.queued_units = 7;
  row.leased_units = 8;
  row.last_sequence = 9;
  row.pinned_kind = "cpu/x";
  row.worker_kinds = {"cpu/x/float32", "odd \"kind\"\n"};
  row.failure.set_reason("INTERNAL");
  row.failure.set_message("why");
  Write([&](Transaction& t) { return t.UpdateJob(row); });
  fixture_->Reopen();

  for (const JobRow& found :
       {GetJob(store(), row.key),
        *Get(store(), [](ReadTransaction& t) { return t.FindJob("one"); }),
        *Get(store(), [](ReadTransaction& t) { return t.FindRequest("tenant", "request"); })}) {
    EXPECT_EQ(found.key, row.key);
    EXPECT_EQ(found.id, "one");
    EXPECT_EQ(found.tenant, "tenant");
    EXPECT_EQ(found.state, row.state);
    EXPECT_EQ(found.priority, -3);
    EXPECT_EQ(found.create_time, kStart);
    EXPECT_EQ(found.start_time, row.start_time);
    EXPECT_EQ(found.end_time, row.end_time);
    EXPECT_EQ(found.deadline, row.deadline);
    EXPECT_EQ(found.totals.SerializeAsString(), row.totals.SerializeAsString());
    EXPECT_EQ(found.queued_units, 7);
    EXPECT_EQ(found.leased_units, 8);
    EXPECT_EQ(found.last_sequence, 9);
    EXPECT_EQ(found.pinned_kind, "cpu/x");
    EXPECT_EQ(found.worker_kinds, row.worker_kinds);
    EXPECT_EQ(found.failure.SerializeAsString(), row.failure.SerializeAsString());
  }
  const JobPlanRow found = Get(store(), [&](ReadTransaction& t) { return t.GetJobPlan(row.key); });
  EXPECT_EQ(found.spec.SerializeAsString(), plan.spec.SerializeAsString());
  EXPECT_EQ(found.estimate.SerializeAsString(), plan.estimate.SerializeAsString());
  EXPECT_EQ(found.warnings, plan.warnings);
  EXPECT_EQ(found.request_id, "request");
  EXPECT_EQ(found.traceparent, plan.traceparent);
  ASSERT_THAT(found.checkpoints, SizeIs(2));
  EXPECT_EQ(found.checkpoints[0].ref.digest(), "sha256:0");
  EXPECT_EQ(found.checkpoints[0].family, "gptj");
  EXPECT_EQ(found.checkpoints[0].weight_bytes, int64_t{1} << 40);
  EXPECT_EQ(found.checkpoints[0].layers, 12);
  EXPECT_EQ(found.checkpoints[0].heads, 3);
  EXPECT_EQ(found.checkpoints[1].ref.name(), "models/b");
}

TEST_P(StoreSuite, WhatIsNotThereIsNotFound) {
  EXPECT_FALSE(Get(store(), [](ReadTransaction& t) { return t.FindJob("none"); }).has_value());
  EXPECT_FALSE(Get(store(), [](ReadTransaction& t) { return t.GetJob(7); }).has_value());
  EXPECT_FALSE(
      Get(store(), [](ReadTransaction& t) { return t.FindRequest("a", "b"); }).has_value());
  EXPECT_FALSE(Get(store(), [](ReadTransaction& t) { return t.GetCell(1, 2); }).has_value());
  EXPECT_FALSE(Get(store(), [](ReadTransaction& t) { return t.GetUnit({1, 2, 3}); }).has_value());
  EXPECT_FALSE(Get(store(), [](ReadTransaction& t) {
                 return t.GetAttempt({1, 2, 3}, 1);
               }).has_value());
  EXPECT_FALSE(Get(store(), [](ReadTransaction& t) { return t.GetWorker("w"); }).has_value());
  EXPECT_EQ(
      store().Read("test", [](ReadTransaction& t) { return t.GetJobPlan(7).status(); }).code(),
      absl::StatusCode::kNotFound);
}

TEST_P(StoreSuite, ABodyThatFailsLeavesNothing) {
  const absl::Status status = store().Write("test", [](Transaction& t) -> absl::Status {
    HOPSCOPE_RETURN_IF_ERROR(t.InsertJob(MakeJobRow("gone"), MakeJobPlanRow()).status());
    return absl::AlreadyExistsError("no");
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_FALSE(Get(store(), [](ReadTransaction& t) { return t.FindJob("gone"); }).has_value());
}

TEST_P(StoreSuite, AnUpdateOfAMissingRowFailsItsBodyEvenIfNobodyLooks) {
  JobRow row = MakeJobRow("none");
  row.key = 99;
  const absl::Status status = store().Write("test", [&](Transaction& t) {
    t.InsertJob(MakeJobRow("other"), MakeJobPlanRow()).status().IgnoreError();
    t.UpdateJob(row).IgnoreError();
    return absl::OkStatus();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(Get(store(), [](ReadTransaction& t) { return t.FindJob("other"); }).has_value());
}

TEST_P(StoreSuite, ARequestIdIsUniqueWithinItsTenant) {
  JobPlanRow plan = MakeJobPlanRow();
  plan.request_id = "r";
  Insert(store(), MakeJobRow("a"), plan);
  JobRow other = MakeJobRow("b");
  other.tenant = "other";
  Insert(store(), other, plan);
  const absl::Status status = store().Write(
      "test", [&](Transaction& t) { return t.InsertJob(MakeJobRow("c"), plan).status(); });
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(Get(store(), [](ReadTransaction& t) { return t.FindRequest("tenant", "r"); })->id, "a");
  EXPECT_EQ(Get(store(), [](ReadTransaction& t) { return t.FindRequest("other", "r"); })->id, "b");
}

TEST_P(StoreSuite, WritesAreSerialisable) {
  // Every write reads the count and adds one: none may be lost, whoever runs beside it.
  const JobKey key = Insert(store(), MakeJobRow("counter"));
  constexpr int kThreads = 16;
  constexpr int kWrites = 25;
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, key, i, &refused] {
      for (int n = 0; n < kWrites; ++n) {
        const absl::Status status = store().Write("test", [&](Transaction& t) -> absl::Status {
          HOPSCOPE_ASSIGN_OR_RETURN(auto job, t.GetJob(key));
          ++job->last_sequence;
          HOPSCOPE_RETURN_IF_ERROR(t.UpdateJob(*job));
          // Some give up after they have written.
          return (i + n) % 5 == 0 ? absl::AbortedError("given up") : absl::OkStatus();
        });
        if (!status.ok()) ++refused;
        // What was acknowledged can be read.
        if (status.ok()) {
          EXPECT_GT(GetJob(store(), key).last_sequence, 1);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, kThreads * kWrites / 5);
  EXPECT_EQ(GetJob(store(), key).last_sequence, 1 + kThreads * kWrites - refused);
}

TEST_P(StoreSuite, AReaderSeesOneState) {
  const JobKey key = Insert(store(), MakeJobRow("job"));
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int n = 0; !stop; ++n) {
      const absl::Status status = store().Write("test", [&](Transaction& t) -> absl::Status {
        HOPSCOPE_ASSIGN_OR_RETURN(auto job, t.GetJob(key));
        ++job->queued_units;
        --job->leased_units;
        return t.UpdateJob(*job);
      });
      EXPECT_TRUE(status.ok()) << status;
    }
  });
  for (int n = 0; n < 50; ++n) {
    Read([&](ReadTransaction& t) -> absl::Status {
      HOPSCOPE_ASSIGN_OR_RETURN(const auto first, t.GetJob(key));
      HOPSCOPE_ASSIGN_OR_RETURN(const auto second, t.GetJob(key));
      EXPECT_EQ(first->queued_units, second->queued_units);
      EXPECT_EQ(first->queued_units + first->leased_units, 20);
      return absl::OkStatus();
    });
  }
  stop = true;
  writer.join();
}

TEST_P(StoreSuite, JobsAreListedByTimeStateAndLabel) {
  // Two share their time: the key then decides.
  for (int i = 0; i < 6; ++i) {
    JobRow row = MakeJobRow(absl::StrCat("j", i));
    row.create_time = kStart + absl::Seconds(i / 2);
    row.state = i % 3 == 0 ? v1::EvalJob::STATE_SUCCEEDED : v1::EvalJob::STATE_RUNNING;
    JobPlanRow plan = MakeJobPlanRow();
    (*plan.spec.mutable_labels())["parity"] = i % 2 == 0 ? "even" : "odd";
    if (i > 2) (*plan.spec.mutable_labels())["late"] = "yes";
    Insert(store(), row, plan);
  }
  const auto list = [this](const JobQuery& query) {
    return Ids(Get(store(), [&](ReadTransaction& t) { return t.ListJobs(query); }));
  };
  EXPECT_THAT(list({}), ElementsAre("j5", "j4", "j3", "j2", "j1", "j0"));
  EXPECT_THAT(list({.newest_first = false}), ElementsAre("j0", "j1", "j2", "j3", "j4", "j5"));
  EXPECT_THAT(list({.state = v1::EvalJob::STATE_SUCCEEDED}), ElementsAre("j3", "j0"));
  EXPECT_THAT(list({.labels = {{"parity", "odd"}}}), ElementsAre("j5", "j3", "j1"));
  EXPECT_THAT(list({.labels = {{"parity", "odd"}, {"late", "yes"}}}), ElementsAre("j5", "j3"));
  EXPECT_THAT(list({.labels = {{"parity", "neither"}}}), IsEmpty());
  EXPECT_THAT(list({.state = v1::EvalJob::STATE_RUNNING,
                    .labels = {{"parity", "even"}},
                    .newest_first = false}),
              ElementsAre("j2", "j4"));
  EXPECT_THAT(list({.created_from = kStart + absl::Seconds(1)}),
              ElementsAre("j5", "j4", "j3", "j2"));
  EXPECT_THAT(list({.created_before = kStart + absl::Seconds(1)}), ElementsAre("j1", "j0"));
  EXPECT_THAT(list({.labels = {{"late", "yes"}}, .created_before = kStart + absl::Seconds(2)}),
              ElementsAre("j3"));
  // Page by page.
  for (const bool newest_first : {true, false}) {
    JobQuery query{.newest_first = newest_first, .limit = 4};
    const auto first = Get(store(), [&](ReadTransaction& t) { return t.ListJobs(query); });
    ASSERT_THAT(first, SizeIs(4));
    query.after = {.create_time = first.back().create_time, .key = first.back().key};
    if (newest_first) {
      EXPECT_THAT(list(query), ElementsAre("j1", "j0"));
      query.labels = {{"parity", "odd"}};
      EXPECT_THAT(list(query), ElementsAre("j1"));
    } else {
      EXPECT_THAT(list(query), ElementsAre("j4", "j5"));
    }
  }
}

TEST_P(StoreSuite, TheQueueHasItsHeadsByPriorityAndTenant) {
  const auto insert = [this](const std::string& id, const std::string& tenant, int priority,
                             int seconds, int64_t queued = 1, int64_t leased = 0) {
    JobRow row = MakeJobRow(id);
    row.tenant = tenant;
    row.priority = priority;
    row.create_time = kStart + absl::Seconds(seconds);
    row.queued_units = queued;
    row.leased_units = leased;
    return Insert(store(), row);
  };
  insert("a-new", "a", 0, 5);
  const JobKey oldest = insert("a-old", "a", 0, 1);
  insert("b", "b", 0, 2, 3, 4);
  insert("urgent", "c", 9, 7);
  insert("low", "a", -1, 0, 1, 2);
  insert("nothing-queued", "z", 9, 0, 0, 5);
  const auto heads = [this] {
    std::vector<std::string> heads;
    for (const QueueHead& head : Get(store(), [](ReadTransaction& t) { return t.QueueHeads(); })) {
      heads.push_back(absl::StrCat(head.priority, head.tenant));
    }
    return heads;
  };
  const auto jobs = [this](int priority, const std::string& tenant,
                           std::optional<JobCursor> after = std::nullopt, int limit = 10) {
    return Get(store(), [&](ReadTransaction& t) {
      return t.QueuedJobs({.priority = priority, .tenant = tenant}, after, limit);
    });
  };
  EXPECT_THAT(heads(), ElementsAre("9c", "0a", "0b", "-1a"));
  EXPECT_THAT(Ids(jobs(0, "a")), ElementsAre("a-old", "a-new"));
  EXPECT_THAT(Ids(jobs(0, "a", std::nullopt, 1)), ElementsAre("a-old"));
  EXPECT_THAT(Ids(jobs(0, "a", JobCursor{kStart + absl::Seconds(1), oldest})),
              ElementsAre("a-new"));
  EXPECT_THAT(Ids(jobs(9, "z")), IsEmpty());

  auto leases = Get(store(), [](ReadTransaction& t) { return t.LeasesByTenant(); });
  std::sort(leases.begin(), leases.end(),
            [](const auto& a, const auto& b) { return a.tenant < b.tenant; });
  ASSERT_THAT(leases, SizeIs(3));
  EXPECT_EQ(leases[0].tenant + std::to_string(leases[0].leased_units), "a2");
  EXPECT_EQ(leases[1].tenant + std::to_string(leases[1].leased_units), "b4");
  EXPECT_EQ(leases[2].tenant + std::to_string(leases[2].leased_units), "z5");

  // A job leaves the queue with its last unit, or when it is paused or ends.
  JobRow job = GetJob(store(), oldest);
  for (const auto state : {v1::EvalJob::STATE_PAUSED, v1::EvalJob::STATE_CANCELLED}) {
    job.state = state;
    Write([&](Transaction& t) { return t.UpdateJob(job); });
    EXPECT_THAT(Ids(jobs(0, "a")), ElementsAre("a-new"));
  }
  job.state = v1::EvalJob::STATE_RUNNING;
  Write([&](Transaction& t) { return t.UpdateJob(job); });
  EXPECT_THAT(Ids(jobs(0, "a")), ElementsAre("a-old", "a-new"));
  job.queued_units = 0;
  Write([&](Transaction& t) { return t.UpdateJob(job); });
  EXPECT_THAT(Ids(jobs(0, "a")), ElementsAre("a-new"));
}

TEST_P(StoreSuite, OverdueJobsAreFoundUntilTheyEnd) {
  const JobKey key = Insert(store(), MakeJobRow("a"));
  JobRow without = MakeJobRow("b");
  without.deadline.reset();
  Insert(store(), without);
  const auto overdue = [this](absl::Time now) {
    return Ids(Get(store(), [&](ReadTransaction& t) { return t.JobsPastDeadline(now, 10); }));
  };
  const absl::Time deadline = kStart + absl::Hours(1);
  EXPECT_THAT(overdue(deadline - absl::Microseconds(1)), IsEmpty());
  EXPECT_THAT(overdue(deadline), ElementsAre("a"));
  JobRow job = GetJob(store(), key);
  job.end_time = deadline;
  Write([&](Transaction& t) { return t.UpdateJob(job); });
  EXPECT_THAT(overdue(deadline), IsEmpty());
}

TEST_P(StoreSuite, CellsAreLeasableWhileTheyHaveUnitsLeft) {
  const JobKey job = Insert(store(), MakeJobRow("job"));
  Write([&](Transaction& t) {
    std::vector<CellRow> cells;
    for (int i = 0; i < 5; ++i) cells.push_back(MakeCellRow(job, i));
    return t.InsertCells(cells);
  });
  const auto leasable = [&](std::optional<int32_t> checkpoint, int32_t from, int limit = 10) {
    std::vector<int32_t> indices;
    for (const CellRow& cell : Get(store(), [&](ReadTransaction& t) {
           return t.LeasableCells(job, checkpoint, from, limit);
         })) {
      indices.push_back(cell.index);
    }
    return indices;
  };
  EXPECT_THAT(leasable(std::nullopt, 0), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(leasable(std::nullopt, 2, 2), ElementsAre(2, 3));
  EXPECT_THAT(leasable(1, 0), ElementsAre(1, 3));

  CellRow cell = *Get(store(), [&](ReadTransaction& t) { return t.GetCell(job, 1); });
  EXPECT_EQ(cell.hops, 4);
  EXPECT_EQ(cell.added_tokens, 850);
  EXPECT_EQ(cell.seed, -42);
  EXPECT_EQ(cell.items, 95);
  EXPECT_EQ(cell.items_per_unit, 10);
  EXPECT_EQ(cell.units(), 10);
  EXPECT_EQ(cell.flops_per_item, 1.25e9);
  cell.next_unit = 10;
  cell.units_completed = 9;
  cell.items_completed = 90;
  cell.merged_units = 8;
  cell.scored_items = 75;
  cell.failed_items = 5;
  cell.correct_items = 60;
  Write([&](Transaction& t) { return t.UpdateCell(cell); });
  EXPECT_THAT(leasable(std::nullopt, 0), ElementsAre(0, 2, 3, 4));
  EXPECT_THAT(leasable(1, 0), ElementsAre(3));
  cell = *Get(store(), [&](ReadTransaction& t) { return t.GetCell(job, 1); });
  EXPECT_EQ(cell.next_unit, 10);
  EXPECT_EQ(cell.units_completed, 9);
  EXPECT_EQ(cell.items_completed, 90);
  EXPECT_EQ(cell.merged_units, 8);
  EXPECT_EQ(cell.scored_items, 75);
  EXPECT_EQ(cell.failed_items, 5);
  EXPECT_EQ(cell.correct_items, 60);

  cell = *Get(store(), [&](ReadTransaction& t) { return t.GetCell(job, 2); });
  cell.state = v1::CellResult::STATE_FAILED;
  cell.failure.set_reason("TIMEOUT");
  Write([&](Transaction& t) { return t.UpdateCell(cell); });
  EXPECT_THAT(leasable(std::nullopt, 0), ElementsAre(0, 3, 4));
  const auto finished =
      Get(store(), [&](ReadTransaction& t) { return t.FinishedCells(job, 0, 10); });
  ASSERT_THAT(finished, SizeIs(1));
  EXPECT_EQ(finished[0].index, 2);
  EXPECT_EQ(finished[0].failure.reason(), "TIMEOUT");
  EXPECT_THAT(Get(store(), [&](ReadTransaction& t) { return t.FinishedCells(job, 3, 10); }),
              IsEmpty());
}

TEST_P(StoreSuite, MergesAndUnmergedResultsAreKept) {
  const JobKey job = InsertWithCell(store());
  EXPECT_EQ(Get(store(), [&](ReadTransaction& t) { return t.GetMerge(job, 0); }).items(), 0);
  v1::UnitResult result;
  Write([&](Transaction& t) -> absl::Status {
    for (const int64_t unit : {3, 1, 2, 5}) {
      HOPSCOPE_RETURN_IF_ERROR(t.InsertUnit(MakeUnit(job, 0, unit, v1::Unit::STATE_COMPLETED)));
      result.set_items(unit);
      HOPSCOPE_RETURN_IF_ERROR(t.PutUnmergedResult({job, 0, unit}, result));
    }
    result.set_items(100);
    HOPSCOPE_RETURN_IF_ERROR(t.PutMerge(job, 0, result));
    result.set_items(101);
    return t.PutMerge(job, 0, result);
  });
  fixture_->Reopen();
  EXPECT_EQ(Get(store(), [&](ReadTransaction& t) { return t.GetMerge(job, 0); }).items(), 101);
  const auto units = [&](int64_t from, int limit) {
    std::vector<int64_t> found;
    for (const auto& row :
         Get(store(), [&](ReadTransaction& t) { return t.UnmergedResults(job, 0, from, limit); })) {
      EXPECT_EQ(row.result.items(), row.unit);
      found.push_back(row.unit);
    }
    return found;
  };
  EXPECT_THAT(units(0, 10), ElementsAre(1, 2, 3, 5));
  EXPECT_THAT(units(2, 2), ElementsAre(2, 3));
  Write([&](Transaction& t) { return t.DeleteUnmergedResults(job, 0, 3); });
  EXPECT_THAT(units(0, 10), ElementsAre(3, 5));
}

TEST_P(StoreSuite, QueuedUnitsComeInOrderAndCanBeCancelled) {
  const JobKey job = Insert(store(), MakeJobRow("job"));
  const JobKey other = InsertWithCell(store(), "other");
  Write([&](Transaction& t) -> absl::Status {
    HOPSCOPE_RETURN_IF_ERROR(t.InsertCells({MakeCellRow(job, 0), MakeCellRow(job, 1)}));
    for (const auto& [cell, unit] : {std::pair(1, 0), {0, 7}, {0, 2}, {1, 4}}) {
      HOPSCOPE_RETURN_IF_ERROR(t.InsertUnit(MakeUnit(job, cell, unit, v1::Unit::STATE_QUEUED)));
    }
    HOPSCOPE_RETURN_IF_ERROR(t.InsertUnit(MakeUnit(job, 0, 3, v1::Unit::STATE_LEASED)));
    return t.InsertUnit(MakeUnit(other, 0, 0, v1::Unit::STATE_QUEUED));
  });
  const auto queued = [&](JobKey key, std::optional<UnitKey> after, int limit) {
    std::vector<std::string> found;
    for (const UnitRow& unit :
         Get(store(), [&](ReadTransaction& t) { return t.QueuedUnits(key, after, limit); })) {
      found.push_back(absl::StrCat(unit.key.cell, "/", unit.key.unit));
    }
    return found;
  };
  EXPECT_THAT(queued(job, std::nullopt, 10), ElementsAre("0/2", "0/7", "1/0", "1/4"));
  EXPECT_THAT(queued(job, UnitKey{job, 0, 2}, 2), ElementsAre("0/7", "1/0"));
  int64_t cancelled = 0;
  Write([&](Transaction& t) -> absl::Status {
    HOPSCOPE_ASSIGN_OR_RETURN(cancelled, t.CancelQueuedUnits(job, 0));
    return absl::OkStatus();
  });
  EXPECT_EQ(cancelled, 2);
  EXPECT_THAT(queued(job, std::nullopt, 10), ElementsAre("1/0", "1/4"));
  EXPECT_EQ(Get(store(),
                [&](ReadTransaction& t) {
                  return t.GetUnit({job, 0, 3});
                })
                ->state,
            v1::Unit::STATE_LEASED);
  Write([&](Transaction& t) -> absl::Status {
    HOPSCOPE_ASSIGN_OR_RETURN(cancelled, t.CancelQueuedUnits(job, std::nullopt));
    return absl::OkStatus();
  });
  EXPECT_EQ(cancelled, 2);
  EXPECT_THAT(queued(job, std::nullopt, 10), IsEmpty());
  EXPECT_THAT(queued(other, std::nullopt, 10), ElementsAre("0/0"));

  UnitRow unit = *Get(store(), [&](ReadTransaction& t) { return t.GetUnit({job, 0, 3}); });
  unit.state = v1::Unit::STATE_QUEUED;
  unit.attempts = 3;
  unit.failed_attempts = 2;
  unit.queued_time = kStart + absl::Seconds(9);
  Write([&](Transaction& t) { return t.UpdateUnit(unit); });
  const UnitRow found = *Get(store(), [&](ReadTransaction& t) { return t.GetUnit({job, 0, 3}); });
  EXPECT_EQ(found.attempts, 3);
  EXPECT_EQ(found.failed_attempts, 2);
  EXPECT_EQ(found.queued_time, unit.queued_time);
  EXPECT_THAT(queued(job, std::nullopt, 10), ElementsAre("0/3"));
}

TEST_P(StoreSuite, LeasesAreFoundByWorkerJobAndExpiry) {
  const JobKey job = Insert(store(), MakeJobRow("job"));
  Write([&](Transaction& t) -> absl::Status {
    HOPSCOPE_RETURN_IF_ERROR(t.InsertCells({MakeCellRow(job, 0), MakeCellRow(job, 1)}));
    for (int i = 0; i < 4; ++i) {
      const UnitRow unit = MakeUnit(job, i / 2, i, v1::Unit::STATE_LEASED);
      HOPSCOPE_RETURN_IF_ERROR(t.InsertUnit(unit));
      HOPSCOPE_RETURN_IF_ERROR(t.InsertAttempt(MakeAttempt(
          unit.key, i % 2 == 0 ? "workers/a" : "workers/b", kStart + absl::Seconds(i))));
    }
    return absl::OkStatus();
  });
  const auto units = [&](const std::vector<AttemptRow>& attempts) {
    std::vector<int64_t> found;
    for (const AttemptRow& attempt : attempts) found.push_back(attempt.unit.unit);
    std::sort(found.begin(), found.end());
    return found;
  };
  const auto of_worker = [&](const std::string& worker) {
    return units(Get(store(), [&](ReadTransaction& t) { return t.LeasesOfWorker(worker); }));
  };
  const auto of_job = [&](std::optional<int32_t> cell) {
    return units(Get(store(), [&](ReadTransaction& t) { return t.LeasesOfJob(job, cell); }));
  };
  const auto expired = [&](absl::Time now, int limit = 10) {
    return units(Get(store(), [&](ReadTransaction& t) { return t.ExpiredLeases(now, limit); }));
  };
  EXPECT_THAT(of_worker("workers/a"), ElementsAre(0, 2));
  EXPECT_THAT(of_job(std::nullopt), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(of_job(1), ElementsAre(2, 3));
  EXPECT_THAT(expired(kStart + absl::Seconds(1)), ElementsAre(0, 1));
  EXPECT_THAT(expired(kStart + absl::Seconds(9), 3), SizeIs(3));

  AttemptRow attempt = *Get(store(), [&](ReadTransaction& t) {
    return t.GetAttempt({job, 0, 0}, 1);
  });
  EXPECT_EQ(attempt.nonce, 0x7fff'ffff'ffff'ffff);
  EXPECT_EQ(attempt.worker, "workers/a");
  EXPECT_EQ(attempt.state, AttemptState::kLeased);
  EXPECT_EQ(attempt.lease_expiry, kStart);
  attempt.state = AttemptState::kLost;
  attempt.end_time = kStart + absl::Seconds(3);
  attempt.lease_expiry.reset();
  attempt.failure.set_reason("WORKER_LOST");
  attempt.failure.set_message("gone");
  Write([&](Transaction& t) { return t.UpdateAttempt(attempt); });
  EXPECT_THAT(of_worker("workers/a"), ElementsAre(2));
  EXPECT_THAT(of_job(0), ElementsAre(1));
  EXPECT_THAT(expired(kStart + absl::Seconds(1)), ElementsAre(1));

  AttemptRow second = MakeAttempt({job, 0, 0}, "workers/c", kStart);
  second.number = 2;
  Write([&](Transaction& t) { return t.InsertAttempt(second); });
  const auto all = Get(store(), [&](ReadTransaction& t) { return t.ListAttempts({job, 0, 0}); });
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].state, AttemptState::kLost);
  EXPECT_EQ(all[0].end_time, attempt.end_time);
  EXPECT_FALSE(all[0].lease_expiry.has_value());
  EXPECT_EQ(all[0].failure.message(), "gone");
  EXPECT_EQ(all[1].worker, "workers/c");
}

TEST_P(StoreSuite, TheFirstOfTwoEqualPartsIsKept) {
  const JobKey job = InsertWithCell(store());
  const UnitRow unit = MakeUnit(job, 0, 0, v1::Unit::STATE_LEASED);
  AttemptRow second = MakeAttempt(unit.key, "w", kStart);
  second.number = 2;
  const std::string binary("\0\xff", 2);
  Write([&](Transaction& t) -> absl::Status {
    HOPSCOPE_RETURN_IF_ERROR(t.InsertUnit(unit));
    HOPSCOPE_RETURN_IF_ERROR(t.InsertAttempt(MakeAttempt(unit.key, "w", kStart)));
    HOPSCOPE_RETURN_IF_ERROR(t.InsertAttempt(second));
    HOPSCOPE_RETURN_IF_ERROR(t.PutReportPart(unit.key, 1, {1, 3, binary}));
    HOPSCOPE_RETURN_IF_ERROR(t.PutReportPart(unit.key, 1, {0, 3, ""}));
    HOPSCOPE_RETURN_IF_ERROR(t.PutReportPart(unit.key, 1, {1, 3, "again"}));
    return t.PutReportPart(unit.key, 2, {0, 1, "other attempt"});
  });
  const auto parts = [&](int attempt) {
    return Get(store(), [&](ReadTransaction& t) { return t.ReportParts(unit.key, attempt); });
  };
  ASSERT_THAT(parts(1), SizeIs(2));
  EXPECT_EQ(parts(1)[0].part, 0);
  EXPECT_EQ(parts(1)[0].bytes, "");
  EXPECT_EQ(parts(1)[1].part_count, 3);
  EXPECT_EQ(parts(1)[1].bytes, binary);
  Write([&](Transaction& t) { return t.DeleteReportParts(unit.key, 1); });
  EXPECT_THAT(parts(1), IsEmpty());
  EXPECT_THAT(parts(2), SizeIs(1));
  Write([&](Transaction& t) { return t.DeleteReportParts(unit.key, std::nullopt); });
  EXPECT_THAT(parts(2), IsEmpty());
}

TEST_P(StoreSuite, EventsAreReplayedInOrderAndOnce) {
  const JobKey job = Insert(store(), MakeJobRow("job"));
  const JobKey other = Insert(store(), MakeJobRow("other"));
  Write([&](Transaction& t) -> absl::Status {
    for (int i = 1; i <= 5; ++i) {
      v1::EvalEvent event;
      event.set_sequence(i);
      event.mutable_warning()->set_message(std::string(100, 'x'));
      HOPSCOPE_RETURN_IF_ERROR(t.InsertEvent(job, event));
      HOPSCOPE_RETURN_IF_ERROR(t.InsertEvent(other, event));
    }
    return absl::OkStatus();
  });
  fixture_->Reopen();
  const auto sequences = [&](int64_t after, int limit, int64_t bytes) {
    std::vector<int64_t> found;
    for (const v1::EvalEvent& event :
         Get(store(), [&](ReadTransaction& t) { return t.ListEvents(job, after, limit, bytes); })) {
      EXPECT_TRUE(event.has_warning());
      found.push_back(event.sequence());
    }
    return found;
  };
  EXPECT_THAT(sequences(0, 10, 1 << 20), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(sequences(2, 2, 1 << 20), ElementsAre(3, 4));
  EXPECT_THAT(sequences(5, 10, 1 << 20), IsEmpty());
  EXPECT_THAT(sequences(0, 10, 150), ElementsAre(1, 2));
  EXPECT_THAT(sequences(0, 10, 1), ElementsAre(1)) << "one at least, or nobody gets on";
  v1::EvalEvent again;
  again.set_sequence(5);
  EXPECT_FALSE(
      store().Write("test", [&](Transaction& t) { return t.InsertEvent(job, again); }).ok());
}

TEST_P(StoreSuite, WorkersAreKeptAndFoundWhenTheyFallSilent) {
  WorkerRow a;
  a.id = "workers/a";
  a.description.set_device("cuda");
  a.description.set_kind("kind");
  a.register_time = kStart;
  a.heartbeat_time = kStart;
  WorkerRow b = a;
  b.id = "workers/b";
  b.description.set_device("cpu");
  b.heartbeat_time = kStart + absl::Seconds(10);
  b.drain_wish = true;
  b.state = v1::Worker::STATE_DRAINING;
  Write([&](Transaction& t) -> absl::Status {
    HOPSCOPE_RETURN_IF_ERROR(t.PutWorker(b));
    return t.PutWorker(a);
  });
  const auto ids = [](const std::vector<WorkerRow>& workers) {
    std::vector<std::string> found;
    for (const WorkerRow& worker : workers) found.push_back(worker.id);
    return found;
  };
  EXPECT_THAT(ids(Get(store(), [](ReadTransaction& t) { return t.ListWorkers(); })),
              ElementsAre("workers/a", "workers/b"));
  const auto silent = [&](absl::Time time) {
    return ids(Get(store(), [&](ReadTransaction& t) { return t.SilentWorkers(time, 10); }));
  };
  EXPECT_THAT(silent(kStart - absl::Microseconds(1)), IsEmpty());
  EXPECT_THAT(silent(kStart), ElementsAre("workers/a"));
  EXPECT_THAT(silent(kStart + absl::Seconds(10)), ElementsAre("workers/a", "workers/b"));
  WorkerRow found = *Get(store(), [](ReadTransaction& t) { return t.GetWorker("workers/b"); });
  EXPECT_EQ(found.description.device(), "cpu");
  EXPECT_EQ(found.state, v1::Worker::STATE_DRAINING);
  EXPECT_TRUE(found.drain_wish);
  EXPECT_EQ(found.register_time, kStart);

  a.state = v1::Worker::STATE_LOST;
  a.description.set_device("cpu");
  Write([&](Transaction& t) { return t.PutWorker(a); });
  EXPECT_THAT(silent(kStart + absl::Seconds(10)), ElementsAre("workers/b"));
  const StateCounts counts = Get(store(), [](ReadTransaction& t) { return t.CountStates(); });
  EXPECT_THAT(counts.workers, SizeIs(2));
  Write([&](Transaction& t) { return t.DeleteLostWorkers(kStart); });
  EXPECT_THAT(ids(Get(store(), [](ReadTransaction& t) { return t.ListWorkers(); })),
              ElementsAre("workers/b"));
}

TEST_P(StoreSuite, CountsAddUp) {
  JobRow row = MakeJobRow("a");
  row.leased_units = 3;
  Insert(store(), row);
  row.id = "b";
  row.state = v1::EvalJob::STATE_RUNNING;
  Insert(store(), row);
  row.id = "c";
  Insert(store(), row);
  row.id = "d";
  row.state = v1::EvalJob::STATE_SUCCEEDED;
  row.queued_units = row.leased_units = 0;
  Insert(store(), row);
  const StateCounts counts = Get(store(), [](ReadTransaction& t) { return t.CountStates(); });
  EXPECT_THAT(counts.jobs,
              ::testing::UnorderedElementsAre(std::pair(v1::EvalJob::STATE_PENDING, 1),
                                              std::pair(v1::EvalJob::STATE_RUNNING, 2),
                                              std::pair(v1::EvalJob::STATE_SUCCEEDED, 1)));
  EXPECT_EQ(counts.queued_units, 60);
  EXPECT_EQ(counts.leased_units, 9);
}

TEST_P(StoreSuite, AProbeWorks) {
  EXPECT_TRUE(store().Probe().ok());
  EXPECT_TRUE(store().Probe().ok());
}

TokensRow MakeTokens(const std::string& digest, int64_t bytes, absl::Time use_time) {
  TokensRow row;
  row.tenant = "tenant";
  row.digest = digest;
  row.bytes = bytes;
  row.sequences = 3;
  row.use_time = use_time;
  return row;
}

TEST_P(StoreSuite, TokensAreFoundByDigestOnceTheyAreComplete) {
  TokensRow row = MakeTokens("", 0, kStart);
  Write([&](Transaction& t) -> absl::Status {
    HOPSCOPE_ASSIGN_OR_RETURN(row.key, t.InsertTokens(row));
    HOPSCOPE_RETURN_IF_ERROR(t.PutTokensChunk(row.key, 0, std::string("a\0b", 3)));
    return t.PutTokensChunk(row.key, 1, "c");
  });
  const auto find = [&](std::optional<absl::string_view> tenant, absl::string_view digest) {
    return Get(store(), [&](ReadTransaction& t) { return t.FindTokens(tenant, digest); });
  };
  EXPECT_FALSE(find("tenant", "").has_value());
  row.digest = "sha256:1";
  row.bytes = 4;
  Write([&](Transaction& t) -> absl::Status {
    HOPSCOPE_RETURN_IF_ERROR(t.PutTokensIndex(row.key, std::string("\0i", 2)));
    return t.UpdateTokens(row);
  });
  ASSERT_TRUE(find("tenant", "sha256:1").has_value());
  EXPECT_EQ(find("tenant", "sha256:1")->key, row.key);
  EXPECT_EQ(find("tenant", "sha256:1")->sequences, 3);
  EXPECT_EQ(find("tenant", "sha256:1")->use_time, kStart);
  EXPECT_TRUE(find(std::nullopt, "sha256:1").has_value());
  EXPECT_FALSE(find("another", "sha256:1").has_value());
  EXPECT_FALSE(find("tenant", "sha256:2").has_value());
  Read([&](ReadTransaction& t) -> absl::Status {
    EXPECT_EQ(*t.GetTokensChunk(row.key, 0), std::string("a\0b", 3));
    EXPECT_EQ(*t.GetTokensChunk(row.key, 1), "c");
    EXPECT_EQ(*t.GetTokensIndex(row.key), std::string("\0i", 2));
    EXPECT_EQ(t.GetTokensChunk(row.key, 2).status().code(), absl::StatusCode::kNotFound);
    return absl::OkStatus();
  });
  Write([&](Transaction& t) { return t.DeleteTokens(row.key); });
  EXPECT_FALSE(find("tenant", "sha256:1").has_value());
  Read([&](ReadTransaction& t) -> absl::Status {
    EXPECT_FALSE(t.GetTokensChunk(row.key, 0).ok());
    return absl::OkStatus();
  });
}

TEST_P(StoreSuite, TokensThatNobodyNeedsAreDeletedAndTheirBytesNoLongerCount) {
  TokensKey linked = 0;
  JobKey job = Insert(store(), MakeJobRow("job"));
  Write([&](Transaction& t) -> absl::Status {
    HOPSCOPE_ASSIGN_OR_RETURN(linked, t.InsertTokens(MakeTokens("sha256:1", 10, kStart)));
    HOPSCOPE_RETURN_IF_ERROR(t.LinkTokens(job, linked));
    HOPSCOPE_RETURN_IF_ERROR(t.LinkTokens(job, linked));
    for (const auto& [digest, bytes, time] : {std::tuple{"sha256:2", 20, kStart},
                                              {"sha256:3", 40, kStart + absl::Seconds(2)},
                                              {"", 100, kStart},
                                              {"", 200, kStart + absl::Seconds(1)}}) {
      HOPSCOPE_RETURN_IF_ERROR(t.InsertTokens(MakeTokens(digest, bytes, time)).status());
    }
    return absl::OkStatus();
  });
  const auto sum = [&](bool complete) {
    return Get(store(), [&](ReadTransaction& t) { return t.SumTokensBytes("tenant", complete); });
  };
  EXPECT_EQ(sum(true), 70);
  EXPECT_EQ(sum(false), 300);
  int64_t deleted = 0;
  const auto clean = [&](int limit) {
    Write([&](Transaction& t) -> absl::Status {
      HOPSCOPE_ASSIGN_OR_RETURN(deleted,
                                t.DeleteUnusedTokens(kStart + absl::Seconds(1), kStart, limit));
      return absl::OkStatus();
    });
    return deleted;
  };
  EXPECT_EQ(clean(1), 1);
  EXPECT_EQ(clean(10), 1);
  EXPECT_EQ(clean(10), 0);
  EXPECT_EQ(sum(true), 50) << "the linked and the young one";
  EXPECT_EQ(sum(false), 200);
}

TEST_P(StoreSuite, CutsComeBackAsTheyWereStored) {
  JobPlanRow plan = MakeJobPlanRow();
  plan.cuts = {{.task = 0, .checkpoint = 1, .ends = {1, 300, int64_t{1} << 40}},
               {.task = 2, .checkpoint = 0, .ends = {7}}};
  const JobKey key = Insert(store(), MakeJobRow("cut"), plan);
  CellRow cell = MakeCellRow(key, 0);
  cell.cut_units = 3;
  cell.unlabelled_items = 2;
  Write([&](Transaction& t) { return t.InsertCells({cell}); });
  const JobPlanRow found = Get(store(), [&](ReadTransaction& t) { return t.GetJobPlan(key); });
  ASSERT_THAT(found.cuts, SizeIs(2));
  EXPECT_EQ(found.cuts[0].checkpoint, 1);
  EXPECT_THAT(found.cuts[0].ends, ElementsAre(1, 300, int64_t{1} << 40));
  EXPECT_EQ(found.cuts[1].task, 2);
  const auto stored = Get(store(), [&](ReadTransaction& t) { return t.GetCell(key, 0); });
  EXPECT_EQ(stored->units(), 3);
  EXPECT_EQ(stored->unlabelled_items, 2);
}

}  // namespace hopscope::store::testing

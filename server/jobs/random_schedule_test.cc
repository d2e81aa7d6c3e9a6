// Runs jobs through thousands of random steps (leases, results in parts, failures, lost workers,
// late and repeated reports, cancellations, restarts) and checks what must hold whatever happens:
// every item counts once, numbers are those of an undisturbed run, bit by bit, every job ends, and
// its events are complete and in order.
#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/merge.h"
#include "server/jobs/results.h"
#include "server/jobs/testing/fake_worker.h"
#include "server/jobs/testing/jobs_fixture.h"

namespace hopscope::jobs {
namespace {

using testing::AbleWorker;
using testing::Bits;
using testing::ComputeUnit;
using testing::FakeWorker;
using testing::JobsTest;
using testing::ScoredSpec;
using testing::SmallSpec;
using Response = v1::ReportUnitResponse;

constexpr int kSteps = 1500;
constexpr int kMaxJobs = 40;
constexpr int kMaxActiveJobs = 6;
constexpr int kMaxAttempts = 3;

// Which items of every job give no result.
const std::vector<int64_t>& NumericItems() {
  static const auto* const items = new std::vector<int64_t>{3, 20, 21};
  return *items;
}

using UnitId = std::tuple<std::string, int32_t, int64_t>;  // job, cell, unit

UnitId IdOf(const v1::WorkUnit& unit) {
  return {unit.job(), unit.ref().cell_index(), unit.ref().unit_index()};
}

struct Worker {
  std::unique_ptr<FakeWorker> calls;
  std::string kind;
  std::vector<v1::UnitLease> held;
  std::map<std::string, int> parts_sent;  // by attempt, of reports that are under way
  bool alive = true;
};

class RandomScheduleTest : public JobsTest, public ::testing::WithParamInterface<int> {
 protected:
  RandomScheduleTest() : random_(static_cast<uint32_t>(GetParam())) {
    dispatcher_options_.max_attempts = kMaxAttempts;
    Reopen();
  }

  int Below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }
  bool Chance(int percent) { return Below(100) < percent; }
  template <typename List>
  auto& AnyOf(List& list) {
    return list[Below(static_cast<int>(list.size()))];
  }

  void Step() {
    const int dice = Below(1000);
    if (dice < 20) {
      CreateJob();
    } else if (dice < 60) {
      StartWorker();
    } else if (dice < 70) {
      LoseWorker();
    } else if (dice < 75) {
      if (!jobs_.empty()) Cancel(AnyOf(jobs_)).IgnoreError();
    } else if (dice < 80) {
      Restart();
    } else if (dice < 180) {
      Heartbeats();
      clock_.Advance(kLease / 10 * (1 + Below(3)));
      ASSERT_TRUE(dispatcher_->Tick().ok());
    } else if (dice < 220) {
      ReportAgain();
    } else if (dice < 500) {
      LeaseSome();
    } else {
      ReportSomething();
    }
  }

  void CreateJob() {
    const auto active = std::count_if(jobs_.begin(), jobs_.end(), [this](const std::string& job) {
      return !Get(job).has_end_time();
    });
    if (jobs_.size() >= kMaxJobs || active >= kMaxActiveJobs) return;
    v1::EvalJobSpec spec = Chance(50) ? ScoredSpec() : SmallSpec();
    spec.mutable_tasks(0)->set_samples(20 + Below(150));
    for (int hops = 2; hops <= 1 + Below(4); ++hops) spec.mutable_tasks(0)->add_hops(hops);
    spec.set_fail_fast(Chance(20));
    spec.set_priority(Below(3));
    spec.set_tenant(Chance(50) ? "a" : "b");
    if (Chance(20)) spec.set_deadline_s(3600);
    // The same request may come again.
    const std::string request_id = absl::StrCat("request-", jobs_.size());
    const std::string job = Create(spec, request_id);
    ASSERT_EQ(Create(spec, request_id), job);
    jobs_.push_back(job);
  }

  void StartWorker() {
    if (std::count_if(workers_.begin(), workers_.end(), [](const Worker& w) { return w.alive; }) >=
        5) {
      return;
    }
    Worker worker;
    worker.kind = Chance(70) ? "cpu/1" : "gpu/1";
    worker.calls = std::make_unique<FakeWorker>(
        dispatcher_.get(), absl::StrCat("workers/w", workers_.size()), AbleWorker(worker.kind));
    workers_.push_back(std::move(worker));
  }

  // A worker that is not heard of any more, but whose reports may still come late.
  void LoseWorker() {
    if (!workers_.empty()) AnyOf(workers_).alive = false;
  }

  void Restart() {
    Reopen();
    for (Worker& worker : workers_) worker.calls->Use(dispatcher_.get());
  }

  void Heartbeats() {
    for (Worker& worker : workers_) {
      if (!worker.alive) continue;
      const auto answer = worker.calls->Heartbeat(worker.held);
      if (!answer.ok()) {
        ASSERT_EQ(answer.status().code(), absl::StatusCode::kNotFound) << answer.status();
        ASSERT_TRUE(worker.calls->Register().ok());
        continue;
      }
      for (const std::string& id : answer->response.cancelled_attempt_ids()) {
        // A real worker stops; this one sometimes reports all the same.
        Drop(worker, id, /*may_report=*/Chance(50));
      }
    }
  }

  void Drop(Worker& worker, const std::string& attempt_id, bool may_report) {
    const auto lease =
        std::find_if(worker.held.begin(), worker.held.end(),
                     [&](const v1::UnitLease& held) { return held.attempt_id() == attempt_id; });
    if (lease == worker.held.end()) return;
    if (may_report) past_.emplace_back(&worker - workers_.data(), *lease);
    worker.held.erase(lease);
  }

  void LeaseSome() {
    if (workers_.empty()) return;
    Worker& worker = AnyOf(workers_);
    if (!worker.alive || worker.held.size() > 6) return;
    const auto leases = worker.calls->TryLease(1 + Below(3));
    if (!leases.ok()) {
      ASSERT_EQ(leases.status().code(), absl::StatusCode::kNotFound) << leases.status();
      ASSERT_TRUE(worker.calls->Register().ok());
      return;
    }
    for (const v1::UnitLease& lease : *leases) {
      worker.held.push_back(lease);
      units_.emplace(IdOf(lease.unit()), lease.unit());
      ASSERT_EQ(completed_.count(IdOf(lease.unit())), 0u) << "leased though it is complete";
      ASSERT_TRUE(attempts_.insert(lease.attempt_id()).second) << "an attempt was given twice";
    }
  }

  void ReportSomething() {
    if (workers_.empty()) return;
    const size_t index = Below(static_cast<int>(workers_.size()));
    Worker& worker = workers_[index];
    if (worker.held.empty()) return;
    const v1::UnitLease lease = AnyOf(worker.held);
    if (Chance(5)) {
      const auto disposition =
          worker.calls->Fail(lease, AnyOf(reasons_), absl::StrCat("attempt ", lease.attempt()));
      ASSERT_TRUE(disposition.ok()) << disposition.status();
    } else if (Chance(5)) {
      ASSERT_TRUE(worker.calls->HandBack(lease).ok());
    } else {
      if (ReportResult(worker, lease) == Response::DISPOSITION_PARTIAL) return;
    }
    past_.emplace_back(index, lease);
    Drop(worker, lease.attempt_id(), /*may_report=*/false);
  }

  Response::Disposition ReportResult(Worker& worker, const v1::UnitLease& lease) {
    const v1::UnitResult result = ComputeUnit(lease.unit(), worker.kind, NumericItems());
    int& sent = worker.parts_sent[lease.attempt_id()];
    absl::StatusOr<Response::Disposition> disposition;
    if (sent > 0 || Chance(20)) {
      // One part of three at a time, the last one first.
      const std::string bytes = Bits(result);  // the same bytes each time
      const size_t third = bytes.size() / 3;
      const int part = 2 - sent;
      disposition = worker.calls->ReportPart(
          lease, part == 2 ? bytes.substr(2 * third) : bytes.substr(part * third, third), part, 3);
      if (disposition.ok() && *disposition == Response::DISPOSITION_PARTIAL) ++sent;
    } else {
      disposition = worker.calls->Report(lease, result);
    }
    EXPECT_TRUE(disposition.ok()) << disposition.status();
    if (!disposition.ok()) return Response::DISPOSITION_UNSPECIFIED;
    if (*disposition == Response::DISPOSITION_APPLIED) {
      EXPECT_TRUE(completed_.emplace(IdOf(lease.unit()), worker.kind).second)
          << "a second result was taken for " << lease.attempt_id();
    }
    return *disposition;
  }

  // Reports, once more or late, what was reported, lost or cancelled before.
  void ReportAgain() {
    if (past_.empty()) return;
    const auto [index, lease] = AnyOf(past_);
    Worker& worker = workers_[index];
    if (Chance(80)) {
      ReportResult(worker, lease);
    } else {
      ASSERT_TRUE(worker.calls->Fail(lease, "INTERNAL").ok());
    }
  }

  // Lets everything come to its end with workers that work.
  void Settle() {
    const size_t first = workers_.size();
    for (const char* kind : {"cpu/1", "gpu/1"}) {
      Worker worker;
      worker.kind = kind;
      worker.calls = std::make_unique<FakeWorker>(
          dispatcher_.get(), absl::StrCat("workers/last", workers_.size()), AbleWorker(kind));
      workers_.push_back(std::move(worker));
    }
    for (size_t i = 0; i < first; ++i) workers_[i].alive = false;
    for (int round = 0; round < 200; ++round) {
      clock_.Advance(kLease / 3);
      Heartbeats();
      ASSERT_TRUE(dispatcher_->Tick().ok());
      for (size_t i = first; i < workers_.size(); ++i) {
        const auto leases = workers_[i].calls->TryLease(50);
        ASSERT_TRUE(leases.ok()) << leases.status();
        for (const v1::UnitLease& lease : *leases) {
          units_.emplace(IdOf(lease.unit()), lease.unit());
          Response::Disposition disposition;
          do {
            disposition = ReportResult(workers_[i], lease);
          } while (disposition == Response::DISPOSITION_PARTIAL);
          ASSERT_EQ(disposition, Response::DISPOSITION_APPLIED);
        }
      }
      if (std::all_of(jobs_.begin(), jobs_.end(),
                      [this](const std::string& job) { return Get(job).has_end_time(); })) {
        return;
      }
    }
    FAIL() << "some job does not end";
  }

  void CheckEvents(const std::string& job) {
    const std::vector<v1::EvalEvent> events = Events(job);
    const v1::EvalJob now = Get(job);
    std::set<std::tuple<int32_t, int64_t, int32_t>> failed;
    std::map<std::pair<int32_t, int64_t>, int> counted;
    std::set<int32_t> cells;
    v1::EvalJob::State state = v1::EvalJob::STATE_UNSPECIFIED;
    for (size_t i = 0; i < events.size(); ++i) {
      const v1::EvalEvent& event = events[i];
      ASSERT_EQ(event.sequence(), static_cast<int64_t>(i) + 1);
      ASSERT_EQ(event.has_job_finished(), now.has_end_time() && i + 1 == events.size());
      if (event.has_job_state_changed()) {
        ASSERT_EQ(event.job_state_changed().previous(), state);
        state = event.job_state_changed().state();
      } else if (event.has_cell_completed()) {
        ASSERT_TRUE(cells.insert(event.cell_completed().result().cell().index()).second);
      } else if (event.has_unit_failed()) {
        const v1::UnitFailed& unit = event.unit_failed();
        ASSERT_TRUE(
            failed.insert({unit.unit().cell_index(), unit.unit().unit_index(), unit.attempt()})
                .second);
        if (unit.failure().reason() != "PREEMPTED") {
          const int n = ++counted[{unit.unit().cell_index(), unit.unit().unit_index()}];
          ASSERT_LE(n, kMaxAttempts);
          ASSERT_EQ(unit.will_retry(), n < kMaxAttempts);
        }
      }
    }
    ASSERT_EQ(state, now.state());
    ASSERT_EQ(now.last_sequence(), static_cast<int64_t>(events.size()));
    ASSERT_EQ(static_cast<int64_t>(cells.size()),
              now.totals().cells_completed() + now.totals().cells_failed());
  }

  void CheckTotals(const std::string& job) {
    int64_t units = 0;
    int64_t items = 0;
    int64_t numeric = 0;
    std::set<std::string> kinds;
    for (const auto& [id, kind] : completed_) {
      if (std::get<0>(id) != job) continue;
      const v1::WorkUnit& unit = units_.at(id);
      ++units;
      items += unit.item_count();
      numeric += ComputeUnit(unit, kind, NumericItems()).items_failed();
      kinds.insert(kind);
    }
    const v1::EvalJob now = Get(job);
    ASSERT_EQ(now.totals().units_completed(), units);
    ASSERT_EQ(now.totals().items_completed(), items);
    ASSERT_EQ(now.totals().items_failed(), numeric);
    ASSERT_LE(kinds.size(), 1u) << "the job is pinned to one kind";
    if (now.state() == v1::EvalJob::STATE_SUCCEEDED) {
      ASSERT_EQ(units, now.totals().units());
      ASSERT_EQ(items, now.totals().items());
    }
  }

  // The results of completed cells, against a merge made here, unit by unit.
  void CheckResults(const std::string& job) {
    const v1::ListEvalResultsResponse results = Results(job);
    int head = 0;
    for (const v1::CellResult& found : results.cells()) {
      if (found.state() != v1::CellResult::STATE_COMPLETED) continue;
      v1::UnitResult merge;
      int64_t next_item = 0;
      for (int64_t unit = 0;; ++unit) {
        const auto done = completed_.find({job, found.cell().index(), unit});
        if (done == completed_.end()) break;
        const v1::WorkUnit& work = units_.at(done->first);
        ASSERT_EQ(work.first_item(), next_item);
        next_item += work.item_count();
        ASSERT_TRUE(MergeUnit(ComputeUnit(work, done->second, NumericItems()), merge).ok());
      }
      ASSERT_EQ(next_item, Get(job).spec().tasks(0).samples()) << "an item is missing";
      ASSERT_EQ(found.items() + found.items_failed(), next_item);
      v1::CellResult expected = found;
      SummariseAnswers(merge.items(), merge.items_failed(), merge.correct(),
                       merge.items_unlabelled(), expected);
      EXPECT_EQ(Bits(found), Bits(expected));
      for (const v1::HeadScores& scores : SummariseHeads(merge, found.cell())) {
        ASSERT_LT(head, results.heads_size());
        EXPECT_EQ(Bits(results.heads(head++)), Bits(scores));
      }
    }
    EXPECT_EQ(head, results.heads_size());
  }

  std::mt19937 random_;
  std::vector<std::string> jobs_;
  std::vector<Worker> workers_;
  std::map<UnitId, v1::WorkUnit> units_;     // every unit that was ever leased
  std::map<UnitId, std::string> completed_;  // units whose result was taken, with the worker's kind
  std::set<std::string> attempts_;           // every attempt id
  std::vector<std::pair<size_t, v1::UnitLease>> past_;  // worker, lease
  const std::vector<std::string> reasons_ = {"INTERNAL", "OUT_OF_MEMORY", "CHECKPOINT",
                                             "TIMEOUT",  "PREEMPTED",     "NOT_A_REASON"};
};

TEST_P(RandomScheduleTest, WhateverHappensTheNumbersAreRight) {
  CreateJob();
  for (int step = 0; step < kSteps; ++step) {
    Step();
    if (HasFatalFailure()) return;
    if (step % 100 == 99) {
      for (const std::string& job : jobs_) {
        CheckEvents(job);
        CheckTotals(job);
        if (HasFatalFailure()) return;
      }
    }
  }
  Settle();
  if (HasFatalFailure()) return;
  int ended_well = 0;
  for (const std::string& job : jobs_) {
    CheckEvents(job);
    CheckTotals(job);
    CheckResults(job);
    const v1::EvalJob::State state = Get(job).state();
    ended_well += state == v1::EvalJob::STATE_SUCCEEDED ? 1 : 0;
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(ended_well, 0) << "a schedule in which nothing works tests little";
  const auto counts = dispatcher_->CountStates();
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ(counts->queued_units, 0);
  EXPECT_EQ(counts->leased_units, 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomScheduleTest, ::testing::Range(1, 7));

}  // namespace
}  // namespace hopscope::jobs

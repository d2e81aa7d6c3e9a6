#include "worker/engine/fake_engine.h"

#include <atomic>
#include <cmath>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/spec/catalog.h"
#include "common/spec/scorer_params.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace hopscope::engine {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

v1::WorkUnit Unit(int64_t first, int64_t count) {
  v1::WorkUnit unit;
  unit.set_job("jobs/1");
  unit.set_first_item(first);
  unit.set_item_count(count);
  v1::SequenceSpec* sequences = unit.mutable_sequences();
  sequences->set_task("number");
  sequences->set_hops(2);
  sequences->set_added_tokens(50);
  sequences->mutable_window()->set_target(8);
  sequences->mutable_window()->set_pre_target(8);
  sequences->set_padding("random");
  sequences->set_seed(42);
  sequences->set_split(v1::SPLIT_EVALUATION);
  unit.mutable_checkpoint()->set_name("number/step-06750");
  unit.mutable_checkpoint()->set_digest("sha256:aa");
  unit.set_dtype(v1::DTYPE_FLOAT32);
  unit.add_scorers()->set_name("accuracy");
  v1::ScorerSpec* scores = unit.add_scorers();
  scores->set_name("positional_symbolic");
  auto& params = *scores->mutable_params()->mutable_fields();
  for (const double tau : {1e-4, 1.0}) {
    params["taus"].mutable_list_value()->add_values()->set_number_value(tau);
  }
  EXPECT_TRUE(spec::NormalizeScorerParams("scorers[1]", scores).ok());
  return unit;
}

v1::UnitResult RunOrDie(FakeEngine* engine, const v1::WorkUnit& unit) {
  const CancelFlag cancel;
  absl::StatusOr<v1::UnitResult> result = engine->Run(unit, cancel, nullptr);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.value_or(v1::UnitResult());
}

absl::Status RunStatus(FakeEngine* engine, const v1::WorkUnit& unit) {
  const CancelFlag cancel;
  return engine->Run(unit, cancel, nullptr).status();
}

// Adds `part` to `whole` by the parallel form of Welford's recurrence.
void Merge(const v1::UnitResult& part, v1::UnitResult* whole) {
  whole->set_items(whole->items() + part.items());
  whole->set_items_failed(whole->items_failed() + part.items_failed());
  whole->set_correct(whole->correct() + part.correct());
  for (int i = 0; i < part.scores_size(); ++i) {
    const v1::ScoreMoments& from = part.scores(i);
    v1::ScoreMoments* into = whole->mutable_scores(i);
    for (int j = 0; j < from.count_size(); ++j) {
      const auto n = static_cast<double>(into->count(j));
      const auto m = static_cast<double>(from.count(j));
      const double delta = from.mean(j) - into->mean(j);
      into->set_count(j, into->count(j) + from.count(j));
      into->set_mean(j, into->mean(j) + delta * m / (n + m));
      into->set_m2(j, into->m2(j) + from.m2(j) + delta * delta * n * m / (n + m));
    }
  }
}

void ExpectClose(const v1::UnitResult& a, const v1::UnitResult& b) {
  EXPECT_EQ(a.items(), b.items());
  EXPECT_EQ(a.items_failed(), b.items_failed());
  EXPECT_EQ(a.correct(), b.correct());
  ASSERT_EQ(a.scores_size(), b.scores_size());
  for (int i = 0; i < a.scores_size(); ++i) {
    ASSERT_EQ(a.scores(i).count_size(), b.scores(i).count_size());
    for (int j = 0; j < a.scores(i).count_size(); ++j) {
      EXPECT_EQ(a.scores(i).count(j), b.scores(i).count(j));
      EXPECT_NEAR(a.scores(i).mean(j), b.scores(i).mean(j), 1e-12);
      EXPECT_NEAR(a.scores(i).m2(j), b.scores(i).m2(j), 1e-9);
    }
  }
}

TEST(FakeEngineTest, ResultHasEveryMetricOfEveryScorerForEveryHead) {
  FakeEngine engine;
  const v1::UnitResult result = RunOrDie(&engine, Unit(0, 100));
  EXPECT_EQ(result.items(), 100);
  EXPECT_EQ(result.items_failed(), 0);
  EXPECT_GT(result.correct(), 0);
  EXPECT_LT(result.correct(), 100);
  EXPECT_EQ(result.kind(), "fake-1, float32");
  ASSERT_EQ(result.scores_size(), 2 * 3);  // taus x metrics
  std::set<std::string> names;
  for (const v1::ScoreMoments& scores : result.scores()) {
    EXPECT_EQ(scores.scorer(), "positional_symbolic");
    names.insert(absl::StrCat(scores.metric(), scores.params().fields().at("taus").number_value()));
    EXPECT_EQ(scores.layers(), 2);
    EXPECT_EQ(scores.heads(), 3);
    ASSERT_EQ(scores.mean_size(), 6);
    ASSERT_EQ(scores.m2_size(), 6);
    EXPECT_THAT(scores.count(), ElementsAre(100, 100, 100, 100, 100, 100));
    for (int i = 0; i < 6; ++i) {
      // Uniform in [0, 1): mean 1/2, variance 1/12; bounds of 5 standard errors.
      EXPECT_NEAR(scores.mean(i), 0.5, 5 * std::sqrt(1.0 / 12 / 100));
      EXPECT_NEAR(scores.m2(i) / 99, 1.0 / 12, 5 * std::sqrt(1.0 / 180 / 100));
    }
  }
  EXPECT_EQ(names.size(), 6u);
}

TEST(FakeEngineTest, ResultIsAFunctionOfTheUnitsContentAlone) {
  FakeEngine engine;
  const v1::UnitResult result = RunOrDie(&engine, Unit(10, 30));
  v1::WorkUnit same = Unit(10, 30);
  same.set_job("jobs/2");
  same.mutable_ref()->set_cell_index(7);
  same.mutable_ref()->set_unit_index(3);
  same.set_flops(1e9);
  same.set_traceparent("00-x");
  same.mutable_checkpoint()->set_name("a copy");
  FakeEngine other_engine;
  EXPECT_TRUE(MessageDifferencer::Equals(RunOrDie(&other_engine, same), result));
  EXPECT_TRUE(MessageDifferencer::Equals(engine.Expected(same), result));

  const std::function<void(v1::WorkUnit*)> changes[] = {
      [](auto* unit) { unit->mutable_sequences()->set_task("letter"); },
      [](auto* unit) { unit->mutable_sequences()->set_hops(3); },
      [](auto* unit) { unit->mutable_sequences()->set_added_tokens(51); },
      [](auto* unit) { unit->mutable_sequences()->set_seed(43); },
      [](auto* unit) { unit->mutable_sequences()->set_split(v1::SPLIT_TRAIN); },
      [](auto* unit) { unit->mutable_checkpoint()->set_digest("sha256:bb"); },
      [](auto* unit) { unit->set_dtype(v1::DTYPE_FLOAT64); },
      [](auto* unit) { unit->set_first_item(11); },
  };
  for (const auto& change : changes) {
    v1::WorkUnit changed = Unit(10, 30);
    change(&changed);
    const v1::UnitResult other = engine.Expected(changed);
    EXPECT_NE(other.scores(0).mean(0), result.scores(0).mean(0)) << changed.DebugString();
  }
  FakeEngine other_kind({.kind = "fake-2"});
  EXPECT_NE(other_kind.Expected(same).scores(0).mean(0), result.scores(0).mean(0));
}

TEST(FakeEngineTest, AccuracyDoesNotDependOnTheOtherScorers) {
  const FakeEngine engine;
  v1::WorkUnit accuracy_alone = Unit(0, 500);
  accuracy_alone.mutable_scorers()->RemoveLast();
  const v1::UnitResult result = engine.Expected(accuracy_alone);
  EXPECT_EQ(result.correct(), engine.Expected(Unit(0, 500)).correct());
  EXPECT_EQ(result.scores_size(), 0);
}

TEST(FakeEngineTest, UnitsMergeToTheWholeAndALostOrDoubledItemShows) {
  FakeEngine engine;
  const v1::UnitResult whole = RunOrDie(&engine, Unit(0, 1000));
  v1::UnitResult merged = RunOrDie(&engine, Unit(0, 300));
  Merge(RunOrDie(&engine, Unit(300, 1)), &merged);
  Merge(RunOrDie(&engine, Unit(301, 699)), &merged);
  ExpectClose(merged, whole);

  v1::UnitResult shifted = RunOrDie(&engine, Unit(1, 1000));
  EXPECT_GT(std::abs(shifted.scores(0).mean(0) - whole.scores(0).mean(0)), 1e-6);
  // Item 300 in place of item 301.
  v1::UnitResult doubled = RunOrDie(&engine, Unit(0, 301));
  Merge(RunOrDie(&engine, Unit(300, 1)), &doubled);
  Merge(RunOrDie(&engine, Unit(302, 698)), &doubled);
  EXPECT_EQ(doubled.items(), whole.items());
  EXPECT_GT(std::abs(doubled.scores(0).mean(0) - whole.scores(0).mean(0)), 1e-6);
}

TEST(FakeEngineTest, CellsHaveAccuraciesOfTheirOwn) {
  const FakeEngine engine;
  std::set<int64_t> correct;
  for (int hops = 1; hops <= 4; ++hops) {
    for (int added = 0; added < 5; ++added) {
      v1::WorkUnit unit = Unit(0, 4000);
      unit.mutable_sequences()->set_hops(hops);
      unit.mutable_sequences()->set_added_tokens(added);
      correct.insert(engine.Expected(unit).correct());
      EXPECT_GE(*correct.begin(), 800);
    }
  }
  EXPECT_GT(correct.size(), 15u);
}

TEST(FakeEngineTest, FailsTheRunsThatItIsToldTo) {
  FakeEngine engine;
  engine.FailRun(2, "OUT_OF_MEMORY");
  engine.FailRun(3, "CHECKPOINT");
  EXPECT_TRUE(RunStatus(&engine, Unit(0, 10)).ok());
  EXPECT_EQ(common::ErrorReason(RunStatus(&engine, Unit(0, 10))), "OUT_OF_MEMORY");
  EXPECT_EQ(common::ErrorReason(RunStatus(&engine, Unit(0, 10))), "CHECKPOINT");
  EXPECT_TRUE(RunStatus(&engine, Unit(0, 10)).ok());
  EXPECT_EQ(engine.runs(), 4);
}

TEST(FakeEngineTest, FailsTheUnitsThatItIsToldTo) {
  FakeEngine engine;
  engine.FailUnits([](const v1::WorkUnit& unit) { return unit.first_item() == 20; }, "INTERNAL");
  EXPECT_TRUE(RunStatus(&engine, Unit(10, 10)).ok());
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_EQ(common::ErrorReason(RunStatus(&engine, Unit(20, 10))), "INTERNAL");
  }
}

TEST(FakeEngineTest, NumericItemsCountAsFailedAndInNothingElse) {
  FakeEngine engine;
  const v1::UnitResult undisturbed = RunOrDie(&engine, Unit(0, 100));
  engine.FailItems([](const v1::WorkUnit&, int64_t item) { return item % 5 == 0; });
  const v1::UnitResult result = RunOrDie(&engine, Unit(0, 100));
  EXPECT_EQ(result.items(), 80);
  EXPECT_EQ(result.items_failed(), 20);
  ASSERT_EQ(result.item_failures_size(), 10);
  EXPECT_EQ(result.item_failures(1).item(), 5);
  EXPECT_EQ(result.item_failures(1).failure().reason(), "NUMERIC");
  EXPECT_EQ(result.scores(0).count(0), 80);
  EXPECT_NE(result.scores(0).mean(0), undisturbed.scores(0).mean(0));
  EXPECT_LE(result.correct(), undisturbed.correct());
  engine.FailItems([](const v1::WorkUnit&, int64_t) { return true; });
  const v1::UnitResult none = RunOrDie(&engine, Unit(0, 100));
  EXPECT_EQ(none.items(), 0);
  EXPECT_EQ(none.items_failed(), 100);
  EXPECT_EQ(none.scores(0).count(0), 0);
}

TEST(FakeEngineTest, HeldRunsGoOnWhenTheyAreReleased) {
  FakeEngine engine({.capacity = 3});
  engine.Hold();
  std::atomic<int> done = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&engine, &done, i] {
      EXPECT_TRUE(RunStatus(&engine, Unit(10 * i, 10)).ok());
      ++done;
    });
  }
  ASSERT_TRUE(engine.AwaitHeld(3));
  EXPECT_EQ(done, 0);
  engine.Release();
  ASSERT_TRUE(engine.AwaitHeld(2));
  engine.ReleaseAll();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, 3);
  EXPECT_EQ(engine.peak_runs(), 3);
}

TEST(FakeEngineTest, OtherUnitsPassWhileSomeAreHeld) {
  FakeEngine engine({.capacity = 2});
  engine.Hold([](const v1::WorkUnit& unit) { return unit.first_item() == 0; });
  std::thread held([&engine] { EXPECT_TRUE(RunStatus(&engine, Unit(0, 10)).ok()); });
  ASSERT_TRUE(engine.AwaitHeld(1));
  EXPECT_TRUE(RunStatus(&engine, Unit(10, 10)).ok());
  engine.Release();
  held.join();
}

TEST(FakeEngineTest, AReleaseMayComeBeforeTheRun) {
  FakeEngine engine;
  engine.Hold();
  engine.Release(2);
  EXPECT_TRUE(RunStatus(&engine, Unit(0, 10)).ok());
  EXPECT_TRUE(RunStatus(&engine, Unit(0, 10)).ok());
  CancelFlag cancel;
  cancel.Cancel();
  EXPECT_EQ(engine.Run(Unit(0, 10), cancel, nullptr).status().code(), absl::StatusCode::kCancelled);
}

TEST(FakeEngineTest, CancelEndsHeldAndDelayedRuns) {
  FakeEngine held_engine;
  held_engine.Hold();
  FakeEngine slow_engine({.delay = absl::Hours(1)});
  FakeEngine item_engine({.delay_per_item = absl::Hours(1)});
  for (FakeEngine* engine : {&held_engine, &slow_engine, &item_engine}) {
    CancelFlag cancel;
    absl::Status status;
    std::thread run([&] { status = engine->Run(Unit(0, 10), cancel, nullptr).status(); });
    while (engine->runs() == 0) std::this_thread::yield();
    cancel.Cancel();
    run.join();
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  }
  // The slot is free again.
  held_engine.ReleaseAll();
  EXPECT_TRUE(RunStatus(&held_engine, Unit(0, 10)).ok());
}

TEST(FakeEngineTest, RunsTakeAtLeastTheDelay) {
  FakeEngine engine({.delay = absl::Milliseconds(20), .delay_per_item = absl::Milliseconds(2)});
  const absl::Time begin = absl::Now();
  EXPECT_TRUE(RunStatus(&engine, Unit(0, 10)).ok());
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(40));
}

TEST(FakeEngineTest, RefusesMoreUnitsThanItsCapacity) {
  FakeEngine engine;
  engine.Hold();
  std::thread held([&engine] { EXPECT_TRUE(RunStatus(&engine, Unit(0, 10)).ok()); });
  ASSERT_TRUE(engine.AwaitHeld(1));
  EXPECT_EQ(common::ErrorReason(RunStatus(&engine, Unit(10, 10))), "INTERNAL");
  engine.Release();
  held.join();
  EXPECT_EQ(engine.peak_runs(), 1);
}

TEST(FakeEngineTest, RefusesAScorerThatItDoesNotKnow) {
  FakeEngine engine;
  v1::WorkUnit unit = Unit(0, 10);
  unit.add_scorers()->set_name("entropy");
  EXPECT_EQ(common::ErrorReason(RunStatus(&engine, unit)), "INTERNAL");
}

TEST(FakeEngineTest, DescribesItself) {
  const FakeEngine engine({.capacity = 5, .kind = "fake-x"});
  v1::WorkerDescription description;
  engine.Describe(&description);
  EXPECT_EQ(description.capacity(), 5);
  EXPECT_EQ(description.kind(), "fake-x");
  EXPECT_EQ(description.device(), "cpu");
  std::vector<std::string> tasks;
  for (const v1::TaskCapability& task : spec::Tasks()) tasks.push_back(task.name());
  EXPECT_THAT(description.tasks(), ElementsAreArray(tasks));
  std::vector<std::string> scorers;
  for (const v1::ScorerCapability& scorer : spec::Scorers()) scorers.push_back(scorer.name());
  EXPECT_THAT(description.scorers(), ElementsAreArray(scorers));
  EXPECT_THAT(description.model_families(), ElementsAre("gptj"));
  EXPECT_EQ(description.dtypes_size(), 4);
  EXPECT_GT(description.memory_bytes(), 0);
}

TEST(FakeEngineTest, KeepsTheMostRecentlyUsedCheckpointsLoaded) {
  FakeEngine engine({.max_loaded = 2});
  EXPECT_THAT(engine.LoadedDigests(), IsEmpty());
  EXPECT_EQ(engine.LoadedBytes(), 0);
  for (const char* digest : {"a", "b", "a", "c"}) {
    v1::WorkUnit unit = Unit(0, 1);
    unit.mutable_checkpoint()->set_digest(digest);
    EXPECT_TRUE(RunStatus(&engine, unit).ok());
  }
  EXPECT_THAT(engine.LoadedDigests(), ElementsAre("c", "a"));
  EXPECT_GT(engine.LoadedBytes(), 0);
}

TEST(FakeEngineTest, ReportsWhatItWorkedThrough) {
  FakeEngine engine;
  const CancelFlag cancel;
  RunStatistics statistics;
  ASSERT_TRUE(engine.Run(Unit(0, 10), cancel, &statistics).ok());
  EXPECT_EQ(statistics.sequences, 10);
  EXPECT_EQ(statistics.tokens, 10 * 67);
}

TEST(FakeEngineTest, HealthIsWhatItIsToldToBe) {
  FakeEngine engine;
  EXPECT_TRUE(engine.Healthy());
  engine.SetHealthy(false);
  EXPECT_FALSE(engine.Healthy());
}

}  // namespace
}  // namespace hopscope::engine

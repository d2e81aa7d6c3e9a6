#include "client/cli/progress_view.h"

#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/test_events.h"
#include "client/cli/text_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hopscope::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::JobTotals Totals(int64_t cells, int64_t failed, int64_t items) {
  v1::JobTotals totals;
  totals.set_cells(cells);
  totals.set_cells_completed(cells - failed);
  totals.set_cells_failed(failed);
  totals.set_items(items);
  totals.set_items_completed(items);
  return totals;
}

v1::EvalEvent LostEvent(int64_t sequence) {
  v1::EvalEvent event;
  event.set_sequence(sequence);
  event.mutable_worker_lost()->set_worker("workers/7");
  event.mutable_worker_lost()->set_description("node-3 pid 4711");
  event.mutable_worker_lost()->add_units();
  event.mutable_worker_lost()->add_units();
  return event;
}

v1::EvalEvent UnitFailedEvent(int64_t sequence, bool will_retry) {
  v1::EvalEvent event;
  event.set_sequence(sequence);
  v1::UnitFailed* failed = event.mutable_unit_failed();
  failed->mutable_unit()->set_cell_index(3);
  failed->mutable_unit()->set_unit_index(5);
  failed->set_attempt(2);
  failed->set_worker("workers/7");
  failed->mutable_failure()->set_reason("OUT_OF_MEMORY");
  failed->mutable_failure()->set_message("2 GiB wanted");
  failed->set_will_retry(will_retry);
  return event;
}

TEST(ProgressBarTextTest, ShowsDoneRateEtaAndCells) {
  JobTally tally(MakeJob(20, 48000), true);
  tally.Add(CellEvent(1, MakeResult(MakeCell(0, 1, 0), 1200, 600)));
  tally.Add(ProgressEvent(24000, 48000, 812.4));
  EXPECT_EQ(ProgressBarText(tally, absl::Seconds(29), 110),
            "[================>                ]  50%  24,000/48,000 items  ETA 0:30  812 items/s  "
            "cells 1/20  elapsed "
            "0:29");
}

TEST(ProgressBarTextTest, LeavesOutWhatHasNoRoom) {
  JobTally tally(MakeJob(20, 48000), true);
  tally.Add(ProgressEvent(24000, 48000, 812.4));
  for (int columns = 0; columns < 200; ++columns) {
    EXPECT_LE(DisplayWidth(ProgressBarText(tally, absl::Seconds(29), columns)),
              static_cast<size_t>(columns));
  }
  EXPECT_EQ(ProgressBarText(tally, absl::Seconds(29), 40), " 50%  24,000/48,000 items  ETA 0:30");
  EXPECT_EQ(ProgressBarText(tally, absl::Seconds(29), 10), " 50%");
}

TEST(ProgressBarTextTest, KnowsNothingYet) {
  EXPECT_EQ(ProgressBarText(JobTally(), absl::ZeroDuration(), 70),
            "[>                      ]   0%  0/0 items  ETA -  - items/s  cells 0/0");
}

class ProgressViewTest : public testing::Test {
 protected:
  ProgressViewTest() : clock_(absl::UnixEpoch()) {}

  // Since the last call.
  std::string TakeErr() {
    std::string text = err_.str();
    err_.str("");
    return text;
  }

  common::FakeClock clock_;
  std::ostringstream out_, err_;
};

TEST_F(ProgressViewTest, BarIsRedrawnAtMostTenTimesASecond) {
  Console console(
      {.out = &out_, .err = &err_, .err_is_terminal = true, .err_columns = [] { return 100; }});
  const auto view = MakeProgressBar(&console, &clock_);
  view->Begin(MakeJob(20, 1000), 0);
  EXPECT_THAT(TakeErr(), HasSubstr("0/1,000 items"));
  int draws = 0;
  for (int i = 1; i <= 1000; ++i) {
    clock_.Advance(absl::Milliseconds(1));
    view->Show(ProgressEvent(i, 1000, 500));
    draws += !TakeErr().empty();
  }
  EXPECT_EQ(draws, 10);
}

TEST_F(ProgressViewTest, FailuresAndLossesAreLinesAboveTheBar) {
  Console console(
      {.out = &out_, .err = &err_, .err_is_terminal = true, .err_columns = [] { return 100; }});
  const auto view = MakeProgressBar(&console, &clock_);
  view->Begin(MakeJob(2, 100), 0);
  TakeErr();
  view->Show(CellEvent(1, MakeResult(MakeCell(0, 1, 0), 50, 25)));
  EXPECT_EQ(TakeErr(), "") << "what goes well only moves the bar, and that not yet";
  view->Show(LostEvent(2));
  std::string text = TakeErr();
  EXPECT_THAT(
      text,
      HasSubstr("\r\033[Kworker lost: workers/7 (node-3 pid 4711); 2 units back in the queue\n"));
  EXPECT_THAT(text, HasSubstr("0/100 items")) << "the bar is drawn again";
  view->Show(UnitFailedEvent(3, true));
  EXPECT_THAT(
      TakeErr(),
      HasSubstr("attempt 2 at unit 5 of cell 3 failed on workers/7, OUT_OF_MEMORY: 2 GiB wanted; "
                "trying again\n"));
  view->Show(CellEvent(4, MakeFailedResult(MakeCell(1, 2, 50), "OUT_OF_MEMORY", "2 GiB wanted")));
  EXPECT_THAT(
      TakeErr(),
      HasSubstr("cell 2/2  number hops 2 +50 tokens, number/step-06750: FAILED, OUT_OF_MEMORY: "
                "2 GiB wanted\n"));
  view->Show(FinishedEvent(5, v1::EvalJob::STATE_PARTIALLY_SUCCEEDED, Totals(2, 1, 100)));
  text = TakeErr();
  EXPECT_THAT(text,
              HasSubstr("job PARTIALLY_SUCCEEDED: 1 cell of 2, 100 sequences, 1 cell failed\n"));
  EXPECT_THAT(text, Not(HasSubstr("items  ETA"))) << "the bar is gone";
  view->End();
  EXPECT_EQ(TakeErr(), "");
  EXPECT_EQ(out_.str(), "");
}

TEST_F(ProgressViewTest, BarMovesOnWhileNothingHappens) {
  Console console(
      {.out = &out_, .err = &err_, .err_is_terminal = true, .err_columns = [] { return 100; }});
  const auto view = MakeProgressBar(&console, &clock_);
  view->Begin(MakeJob(2, 100), 0);
  clock_.Advance(absl::Seconds(61));
  TakeErr();
  view->Tick();
  EXPECT_THAT(TakeErr(), HasSubstr("elapsed 1:01"));
}

TEST_F(ProgressViewTest, LinesSayEachCellAndTheWholeNowAndThen) {
  Console console({.out = &out_, .err = &err_});
  const auto view = MakeProgressLines(&console, &clock_, absl::Seconds(5));
  v1::EvalJob job = MakeJob(2, 100);
  view->Begin(job, 0);
  view->Show(StateEvent(1, v1::EvalJob::STATE_RUNNING));
  for (int i = 0; i < 12; ++i) {
    clock_.Advance(absl::Seconds(1));
    view->Show(ProgressEvent(4 * i, 100, 4));
  }
  view->Show(CellEvent(2, MakeResult(MakeCell(0, 1, 0), 50, 25)));
  view->Show(FinishedEvent(3, v1::EvalJob::STATE_SUCCEEDED, Totals(2, 0, 100)));
  view->End();
  EXPECT_EQ(TakeErr(),
            "job RUNNING\n"
            "16%  16/100 items  4.0 items/s  elapsed 0:05  ETA 0:21\n"
            "36%  36/100 items  4.0 items/s  elapsed 0:10  ETA 0:16\n"
            "cell 1/2  number hops 1 +0 tokens, number/step-06750: accuracy 0.5000 ±0.0714 (n=50)\n"
            "job SUCCEEDED: 2 cells of 2, 100 sequences\n");
  EXPECT_EQ(out_.str(), "");
}

TEST_F(ProgressViewTest, EachWarningIsToldOnce) {
  Console console({.out = &out_, .err = &err_});
  const auto view = MakeProgressLines(&console, &clock_, absl::Seconds(5));
  v1::EvalJob job = MakeJob(2, 100);
  job.add_warnings("vocabulary is larger");
  view->Begin(job, 0);
  v1::EvalEvent event;
  event.set_sequence(1);
  event.mutable_warning()->set_message("vocabulary is larger");
  view->Show(event);
  event.set_sequence(2);
  event.mutable_warning()->set_message("another");
  view->Show(event);
  EXPECT_EQ(TakeErr(), "warning: vocabulary is larger\nwarning: another\n");
}

TEST_F(ProgressViewTest, SeedsAreNamedWhereThereAreSeveral) {
  v1::EvalJob job = MakeJob(2, 100);
  job.mutable_spec()->add_seeds(1);
  job.mutable_spec()->add_seeds(2);
  JobTally tally(job, true);
  const v1::EvalEvent event = CellEvent(1, MakeResult(MakeCell(0, 1, 0, "c", "number", 2), 50, 25));
  tally.Add(event);
  EXPECT_THAT(EventText(event, tally), HasSubstr(", c, seed 2: accuracy"));
}

TEST_F(ProgressViewTest, JsonIsOneEventALine) {
  Console console({.out = &out_, .err = &err_});
  const auto view = MakeProgressJson(&console);
  view->Begin(MakeJob(2, 100), 0);
  EXPECT_TRUE(view->Show(StateEvent(1, v1::EvalJob::STATE_RUNNING)));
  EXPECT_TRUE(view->Show(LostEvent(2)));
  view->End();
  const std::vector<std::string> lines = absl::StrSplit(out_.str(), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(nlohmann::json::parse(lines[0])["jobStateChanged"]["state"], "STATE_RUNNING");
  EXPECT_EQ(nlohmann::json::parse(lines[1])["workerLost"]["worker"], "workers/7");
  EXPECT_EQ(err_.str(), "");
  out_.setstate(std::ios::badbit);
  EXPECT_FALSE(view->Show(LostEvent(3))) << "nobody reads any more";
}

TEST(JobTallyTest, CountsReplayedEventsFromTheStart) {
  v1::EvalJob job = MakeJob(4, 400);
  job.mutable_totals()->set_cells_completed(2);
  job.mutable_totals()->set_items_completed(200);
  JobTally replayed(job, /*replayed=*/true);
  EXPECT_EQ(replayed.cells_ended(), 0);
  replayed.Add(CellEvent(1, MakeResult(MakeCell(0, 1, 0), 100, 50)));
  replayed.Add(CellEvent(2, MakeResult(MakeCell(1, 2, 0), 100, 50)));
  EXPECT_EQ(replayed.cells_ended(), 2);
  EXPECT_EQ(replayed.items_done(), 200);
  JobTally resumed(job, /*replayed=*/false);
  EXPECT_EQ(resumed.cells_ended(), 2);
  resumed.Add(CellEvent(3, MakeFailedResult(MakeCell(2, 3, 0), "TIMEOUT", "")));
  EXPECT_EQ(resumed.cells_ended(), 3);
  EXPECT_EQ(resumed.cells_failed(), 1);
  EXPECT_EQ(resumed.items_done(), 200);
}

TEST(JobTallyTest, ProgressNeverGoesBack) {
  JobTally tally(MakeJob(4, 400), true);
  tally.Add(CellEvent(1, MakeResult(MakeCell(0, 1, 0), 100, 50)));
  tally.Add(ProgressEvent(90, 400, 10));
  EXPECT_EQ(tally.items_done(), 100);
}

}  // namespace
}  // namespace hopscope::cli

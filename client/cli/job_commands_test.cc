// hopscope watch, get, list, cancel and results.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli/command_test_fixture.h"
#include "client/cli/exit_codes.h"
#include "client/cli/text_table.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hopscope::cli {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Return;
using ::testing::StartsWith;

using JobCommandsTest = CommandTest;

TEST_F(JobCommandsTest, WatchPassesTheSequenceOn) {
  ServeJob(v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_CALL(connection(), WatchEvalJob(_)).WillOnce([](const v1::WatchEvalJobRequest& request) {
    EXPECT_EQ(request.name(), "jobs/1");
    EXPECT_EQ(request.after_sequence(), 17);
    return std::make_unique<client::FakeEventReader>(
        std::vector<v1::EvalEvent>{FinishedEvent(18, v1::EvalJob::STATE_SUCCEEDED, {})});
  });
  EXPECT_EQ(Run({"watch", "1", "--after", "17", "--json"}), kExitOk);
  EXPECT_EQ(nlohmann::json::parse(out())["sequence"], "18");
}

TEST_F(JobCommandsTest, AnInterruptEndsAWatchAndLeavesTheJob) {
  ServeJob(v1::EvalJob::STATE_RUNNING);
  EXPECT_CALL(connection(), CancelEvalJob(_)).Times(0);
  EXPECT_CALL(connection(), WatchEvalJob(_)).WillOnce([this](const auto&) {
    auto reader = std::make_unique<client::FakeEventReader>(std::vector<v1::EvalEvent>{});
    client::FakeEventReader* raw = reader.get();
    reader->BeforeEvent(0, [this, raw] {
      world_.interrupts().Trigger();
      EXPECT_TRUE(world_.connect_options().connection.cancellation->cancelled());
      raw->Cancel();
    });
    return reader;
  });
  EXPECT_EQ(Run({"watch", "1"}), kExitInterrupted);
}

TEST_F(JobCommandsTest, GetShowsAJob) {
  v1::GetEvalJobResponse response;
  v1::EvalJob& job = *response.mutable_job();
  job = MakeJob(20, 24000);
  job.set_state(v1::EvalJob::STATE_PENDING);
  job.set_waiting_reason("no worker is connected");
  job.mutable_spec()->set_name("sweep");
  job.mutable_create_time()->set_seconds(1769847300);
  EXPECT_CALL(connection(), GetEvalJob(_)).WillOnce([&](const v1::GetEvalJobRequest& request) {
    EXPECT_EQ(request.name(), "jobs/1");
    return response;
  });
  EXPECT_EQ(Run({"get", "1"}), kExitOk);
  EXPECT_EQ(out(),
            "jobs/1\n"
            "  state      PENDING\n"
            "  waits      no worker is connected\n"
            "  spec       sweep\n"
            "  created    2026-01-31 08:15:00 UTC\n"
            "  started    -\n"
            "  ended      -\n"
            "  cells      0 of 20\n"
            "  units      0 of 0\n"
            "  sequences  0 of 24,000\n");
  world_.NewConnection();
  world_.ClearOutput();
  EXPECT_CALL(connection(), GetEvalJob(_)).WillOnce(Return(response));
  EXPECT_EQ(Run({"get", "jobs/1", "--json"}), kExitOk);
  EXPECT_EQ(nlohmann::json::parse(out())["waitingReason"], "no worker is connected");
}

TEST_F(JobCommandsTest, ListShowsJobs) {
  v1::ListEvalJobsResponse response;
  *response.add_jobs() = MakeJob(20, 24000);
  response.mutable_jobs(0)->mutable_totals()->set_items_completed(12000);
  response.mutable_jobs(0)->mutable_create_time()->set_seconds(1769847300);
  response.mutable_jobs(0)->mutable_spec()->set_name("sweep");
  EXPECT_CALL(connection(), ListEvalJobs(_)).WillOnce([&](const v1::ListEvalJobsRequest& request) {
    EXPECT_EQ(request.filter(), "state=RUNNING");
    EXPECT_EQ(request.page_size(), 7);
    return response;
  });
  EXPECT_EQ(Run({"list", "--filter", "state=RUNNING", "--limit", "7"}), kExitOk);
  EXPECT_EQ(out(),
            "job     state    cells  done  created                  spec\n"
            "jobs/1  RUNNING     20   50%  2026-01-31 08:15:00 UTC  sweep\n");
  world_.NewConnection();
  world_.ClearOutput();
  EXPECT_CALL(connection(), ListEvalJobs(_)).WillOnce(Return(response));
  EXPECT_EQ(Run({"list", "--json"}), kExitOk);
  EXPECT_EQ(nlohmann::json::parse(out())["jobs"][0]["name"], "jobs/1");
  world_.NewConnection();
  world_.ClearOutput();
  EXPECT_CALL(connection(), ListEvalJobs(_)).WillOnce(Return(v1::ListEvalJobsResponse()));
  EXPECT_EQ(Run({"list"}), kExitOk);
  EXPECT_EQ(err(), "no jobs\n");
}

TEST_F(JobCommandsTest, CancelSaysWhatBecameOfTheJob) {
  v1::CancelEvalJobResponse response;
  *response.mutable_job() = MakeJob(1, 1);
  response.mutable_job()->set_state(v1::EvalJob::STATE_CANCELLED);
  EXPECT_CALL(connection(), CancelEvalJob(_)).WillOnce(Return(response));
  EXPECT_EQ(Run({"cancel", "1"}), kExitOk);
  EXPECT_EQ(out(), "jobs/1 CANCELLED\n");
  world_.NewConnection();
  EXPECT_CALL(connection(), CancelEvalJob(_))
      .WillOnce(Return(common::MakeError(absl::StatusCode::kFailedPrecondition, "JOB_ENDED",
                                         "jobs/1 has ended")));
  EXPECT_EQ(Run({"cancel", "1"}), kExitError);
  EXPECT_THAT(err(), HasSubstr("error: jobs/1 has ended"));
}

TEST_F(JobCommandsTest, ResultsShowsSavesAndPrintsJson) {
  ServeJob(v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_EQ(Run({"results", "1", "--output", Path("out"), "--gamma", "0.01"}), kExitOk) << err();
  EXPECT_THAT(out(), AllOf(StartsWith("jobs/1 SUCCEEDED"), HasSubstr("0.7500 ±0.0435"),
                           HasSubstr("gamma 0.01"), HasSubstr("0.950 ±0.010  0.050 ±0.010  mix")));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out" / "results.json"));
  world_.NewConnection();
  ServeJob(v1::EvalJob::STATE_SUCCEEDED);
  world_.ClearOutput();
  EXPECT_EQ(Run({"results", "1", "--json"}), kExitOk);
  EXPECT_EQ(nlohmann::json::parse(out())["heads"][0]["mean"], 0.95);
  world_.NewConnection();
  ServeJob(v1::EvalJob::STATE_SUCCEEDED);
  world_.ClearOutput();
  EXPECT_EQ(Run({"results", "--gamma", "0.01", "--gamma", "0.1", "1"}), kExitOk) << err();
  EXPECT_THAT(out(), AllOf(HasSubstr("gamma 0.01 | 0.10"),
                           HasSubstr("0.950 ±0.010  0.050 ±0.010  mix | pos")));
}

TEST_F(JobCommandsTest, TablesAreAsWideAsTheTerminalElseAsColumnsSays) {
  v1::ListEvalResultsResponse results;
  for (int i = 0; i < 8; ++i) *results.add_cells() = MakeResult(MakeCell(i, 1, 10 * i), 100, 75);
  int terminal = 0;
  world_.environment().out_columns = [&terminal] { return terminal; };
  const auto longest_line = [&] {
    world_.NewConnection();
    world_.ClearOutput();
    ServeJob(v1::EvalJob::STATE_SUCCEEDED);
    ON_CALL(connection(), ListEvalResults(_)).WillByDefault(Return(results));
    EXPECT_EQ(Run({"results", "1"}), kExitOk);
    std::istringstream lines(out());
    size_t longest = 0;
    for (std::string line; std::getline(lines, line);)
      longest = std::max(longest, DisplayWidth(line));
    return longest;
  };
  EXPECT_GT(longest_line(), 80u);
  EXPECT_LE(longest_line(), 100u);
  world_.variables()["COLUMNS"] = "140";
  EXPECT_GT(longest_line(), 120u);
  terminal = 90;
  EXPECT_LE(longest_line(), 90u);
}

TEST_F(JobCommandsTest, ManyTablesAreCutAndSaySo) {
  ServeJob(v1::EvalJob::STATE_SUCCEEDED);
  v1::ListEvalResultsResponse results;
  for (int i = 0; i < 15; ++i) {
    *results.add_cells() = MakeResult(MakeCell(i, 1, 0, "step-" + std::to_string(i)), 100, 75);
  }
  ON_CALL(connection(), ListEvalResults(_)).WillByDefault(Return(results));
  EXPECT_EQ(Run({"results", "1"}), kExitOk);
  EXPECT_THAT(out(), AllOf(HasSubstr("step-11\n"), Not(HasSubstr("step-12\n")),
                           HasSubstr("... and 3 more tables: --max_tables 0 shows all")));
}

}  // namespace
}  // namespace hopscope::cli

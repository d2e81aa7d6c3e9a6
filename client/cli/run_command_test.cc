// hopscope run.
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/command_test_fixture.h"
#include "client/cli/exit_codes.h"
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

using RunCommandTest = CommandTest;

TEST_F(RunCommandTest, HelpOfRunDocumentsExitCodesAndInterrupts) {
  EXPECT_EQ(Run({"run", "--help"}), kExitOk);
  EXPECT_THAT(out(), AllOf(HasSubstr("Exit codes:"), HasSubstr("  5    the job was cancelled"),
                           HasSubstr("Ctrl-C")));
}

TEST_F(RunCommandTest, RunFollowsShowsAndSaves) {
  ServeJob(v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_CALL(connection(), CreateEvalJob(_)).WillOnce([](const v1::CreateEvalJobRequest& request) {
    EXPECT_EQ(request.spec().name(), "sweep");
    EXPECT_FALSE(request.request_id().empty());
    v1::CreateEvalJobResponse created;
    *created.mutable_job() = MakeJob(1, 100);
    created.mutable_job()->add_warnings("vocabulary is larger");
    return created;
  });
  EXPECT_EQ(Run({"run", Path("spec.yaml"), "--output", Path("out")}), kExitOk) << err();
  EXPECT_THAT(
      err(),
      AllOf(
          HasSubstr("job jobs/1: 1 cell, 100 sequences\n"),
          HasSubstr("warning: vocabulary is larger\n"),
          HasSubstr("cell 1/1  number hops 1 +0 tokens, number/step-06750: accuracy 0.7500 ±0.0435 "
                    "(n=100)\n"),
          HasSubstr("saved results.json")));
  EXPECT_THAT(out(),
              AllOf(HasSubstr("Accuracy: number, number/step-06750"), HasSubstr("0.7500 ±0.0435"),
                    HasSubstr("0.950 ±0.010  0.050 ±0.010  pos")));
  std::ifstream file(folder_ / "out" / "results.json");
  const auto json = nlohmann::json::parse(file);
  EXPECT_EQ(json["cells"][0]["accuracy"], 0.75);
  EXPECT_EQ(json["versions"]["server"], "0.1.0");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out" / "cells.csv"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out" / "heads.csv"));
}

TEST_F(RunCommandTest, RunExitsWithTheJobsEnd) {
  const std::pair<v1::EvalJob::State, int> ends[] = {
      {v1::EvalJob::STATE_SUCCEEDED, kExitOk},
      {v1::EvalJob::STATE_FAILED, kExitJobFailed},
      {v1::EvalJob::STATE_PARTIALLY_SUCCEEDED, kExitJobPartial},
      {v1::EvalJob::STATE_CANCELLED, kExitJobCancelled}};
  for (const auto& [state, code] : ends) {
    for (const char* command : {"run", "watch"}) {
      world_.NewConnection();
      ServeJob(state);
      EXPECT_EQ(Run({command, std::string(command) == "run" ? Path("spec.yaml") : "1"}), code)
          << command;
    }
  }
}

TEST_F(RunCommandTest, RunWithJsonPrintsEventsAlone) {
  ServeJob(v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_EQ(Run({"run", Path("spec.yaml"), "--json", "--output", Path("out")}), kExitOk);
  std::istringstream lines(out());
  std::vector<nlohmann::json> events;
  for (std::string line; std::getline(lines, line);) events.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_TRUE(events[2].contains("jobFinished"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out" / "results.json"));
}

TEST_F(RunCommandTest, AReaderThatGoesAwayEndsTheCommandAndNotTheJob) {
  world_.environment().out_error = [] { return EPIPE; };
  for (const char* command : {"run", "watch"}) {
    world_.NewConnection();
    world_.ClearOutput();
    ServeJob(v1::EvalJob::STATE_SUCCEEDED);
    EXPECT_CALL(connection(), CancelEvalJob(_)).Times(0);
    world_.out_stream().setstate(std::ios::badbit);
    const bool run = std::string(command) == "run";
    EXPECT_EQ(Run({command, run ? Path("spec.yaml") : "1", "--json"}), kExitNoReader);
    EXPECT_THAT(err(), Not(HasSubstr("error")));
    if (run) {
      EXPECT_THAT(err(), HasSubstr("jobs/1 goes on; follow it with: hopscope watch jobs/1"));
    }
  }
}

TEST_F(RunCommandTest, AReaderThatGoesAwayDoesNotHideHowTheJobEnded) {
  world_.environment().out_error = [] { return EPIPE; };
  ServeJob(v1::EvalJob::STATE_FAILED);
  world_.out_stream().setstate(std::ios::badbit);
  EXPECT_EQ(Run({"run", Path("spec.yaml")}), kExitJobFailed);
}

TEST_F(RunCommandTest, EventsThatCannotBeWrittenAreAnError) {
  world_.environment().out_error = [] { return ENOSPC; };
  ServeJob(v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_CALL(connection(), CancelEvalJob(_)).Times(0);
  world_.out_stream().setstate(std::ios::badbit);
  EXPECT_EQ(Run({"run", Path("spec.yaml"), "--json"}), kExitError);
  EXPECT_THAT(err(), AllOf(HasSubstr("error: cannot write standard output: No space left"),
                           HasSubstr("hopscope watch jobs/1")));
}

TEST_F(RunCommandTest, RunRefusesAnOutputThatCannotBeWrittenBeforeItSubmits) {
  std::ofstream(folder_ / "file") << "x";
  EXPECT_CALL(connection(), CreateEvalJob(_)).Times(0);
  EXPECT_EQ(Run({"run", Path("spec.yaml"), "--output", Path("file")}), kExitError);
  EXPECT_THAT(err(), HasSubstr(Path("file")));
}

TEST_F(RunCommandTest, ASecondInterruptLeavesARunAndSaysHowToFollow) {
  ServeJob(v1::EvalJob::STATE_RUNNING);
  ON_CALL(connection(), CancelEvalJob(_)).WillByDefault(Return(v1::CancelEvalJobResponse()));
  EXPECT_CALL(connection(), WatchEvalJob(_)).WillOnce([this](const auto&) {
    auto reader = std::make_unique<client::FakeEventReader>(std::vector<v1::EvalEvent>{});
    client::FakeEventReader* raw = reader.get();
    reader->BeforeEvent(0, [this, raw] {
      world_.interrupts().Trigger();
      world_.interrupts().Trigger();
      raw->Cancel();
    });
    return reader;
  });
  EXPECT_EQ(Run({"run", Path("spec.yaml")}), kExitInterrupted);
  EXPECT_THAT(err(), HasSubstr("hopscope watch jobs/1"));
}

TEST_F(RunCommandTest, RunLocalUsesAClusterOfItsOwn) {
  ServeJob(v1::EvalJob::STATE_SUCCEEDED);
  bool stopped = false;
  world_.environment().start_local_cluster =
      [&](LocalClusterOptions options) -> absl::StatusOr<std::unique_ptr<LocalCluster>> {
    EXPECT_EQ(options.model_root, "models");
    EXPECT_EQ(options.workers, 3);
    EXPECT_EQ(options.threads, 2);
    EXPECT_EQ(options.device, "cpu");
    EXPECT_THAT(options.server_program, testing::EndsWith("/hopscope-server"));
    EXPECT_EQ(options.worker_program, "/elsewhere/worker");
    return std::make_unique<FakeCluster>(absl::OkStatus(), &stopped);
  };
  world_.variables()["HOPSCOPE_WORKER_PROGRAM"] = "/elsewhere/worker";
  EXPECT_EQ(Run({"run", Path("spec.yaml"), "--local", "--model_root", "models", "--workers", "3",
                 "--threads", "2", "--device", "cpu"}),
            kExitOk);
  EXPECT_EQ(world_.connect_options().server, "127.0.0.1:43210");
  EXPECT_TRUE(stopped);
  EXPECT_THAT(err(), HasSubstr("--output DIR saves them"));
}

TEST_F(RunCommandTest, RunLocalSaysWhyItsClusterWasLost) {
  ServeJob(v1::EvalJob::STATE_SUCCEEDED);
  bool stopped = false;
  world_.environment().start_local_cluster =
      [&](LocalClusterOptions) -> absl::StatusOr<std::unique_ptr<LocalCluster>> {
    return std::make_unique<FakeCluster>(
        common::MakeError(absl::StatusCode::kFailedPrecondition, "PROGRAM_ENDED",
                          "the local server ended"),
        &stopped);
  };
  ON_CALL(connection(), WatchEvalJob(_)).WillByDefault([](const auto&) {
    return std::make_unique<client::FakeEventReader>(std::vector<v1::EvalEvent>{},
                                                     absl::CancelledError(""));
  });
  EXPECT_EQ(Run({"run", Path("spec.yaml"), "--local"}), kExitError);
  EXPECT_THAT(err(), HasSubstr("error: the local server ended"));
  EXPECT_TRUE(stopped);
}

TEST_F(RunCommandTest, AnInterruptWhileTheClusterStartsEndsTheCommand) {
  world_.environment().start_local_cluster =
      [&](LocalClusterOptions options) -> absl::StatusOr<std::unique_ptr<LocalCluster>> {
    world_.interrupts().Trigger();
    EXPECT_TRUE(options.cancellation->cancelled());
    return absl::CancelledError("cancelled");
  };
  EXPECT_EQ(Run({"run", Path("spec.yaml"), "--local"}), kExitInterrupted);
}

}  // namespace
}  // namespace hopscope::cli

// The commands, as they are typed.
#include "client/cli/app.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "client/cli/exit_codes.h"
#include "client/cli/test_environment.h"
#include "client/cli/test_events.h"
#include "client/fake_event_reader.h"
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

constexpr char kSpec[] =
    "name: sweep\ntasks:\n  - {task: number, hops: [1, 9], samples: 100, checkpoints: [a]}\n";

class AppTest : public testing::Test {
 protected:
  AppTest() {
    std::string path = testing::TempDir() + "/app-XXXXXX";
    folder_ = mkdtemp(path.data());
    std::ofstream(folder_ / "spec.yaml") << kSpec;
  }
  ~AppTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  int Run(std::vector<std::string> arguments) { return world_.Run(std::move(arguments)); }
  std::string out() const { return world_.out(); }
  std::string err() const { return world_.err(); }
  client::MockConnection& connection() { return world_.connection(); }

  // A server with one job of one cell that ends in this state, and its results.
  void ServeJob(v1::EvalJob::State end) {
    v1::CreateEvalJobResponse created;
    *created.mutable_job() = MakeJob(1, 100);
    created.mutable_job()->add_warnings("vocabulary is larger");
    ON_CALL(connection(), CreateEvalJob(_)).WillByDefault(Return(created));
    v1::GetEvalJobResponse got;
    *got.mutable_job() = MakeJob(1, 100);
    got.mutable_job()->set_state(end);
    ON_CALL(connection(), GetEvalJob(_)).WillByDefault(Return(got));
    ON_CALL(connection(), WatchEvalJob(_)).WillByDefault([end](const auto&) {
      v1::JobTotals totals;
      totals.set_cells(1);
      totals.set_cells_completed(1);
      return std::make_unique<client::FakeEventReader>(std::vector<v1::EvalEvent>{
          StateEvent(1, v1::EvalJob::STATE_RUNNING),
          CellEvent(2, MakeResult(MakeCell(0, 1, 0), 100, 75)), FinishedEvent(3, end, totals)});
    });
    v1::ListEvalResultsResponse results;
    *results.add_cells() = MakeResult(MakeCell(0, 1, 0), 100, 75);
    *results.add_heads() = MakeScores(MakeCell(0, 1, 0), "positional", 1, 1, {0.95});
    *results.add_heads() = MakeScores(MakeCell(0, 1, 0), "symbolic", 1, 1, {0.05});
    ON_CALL(connection(), ListEvalResults(_)).WillByDefault(Return(results));
    v1::GetCapabilitiesResponse capabilities;
    capabilities.set_version("0.1.0");
    ON_CALL(connection(), GetCapabilities(_)).WillByDefault(Return(capabilities));
  }

  std::filesystem::path folder_;
  TestEnvironment world_;
};

TEST_F(AppTest, HelpBeginsWithExamplesAndNamesAllCommands) {
  EXPECT_EQ(Run({"--help"}), kExitOk);
  const std::string help = out();
  EXPECT_THAT(help, StartsWith("Examples:\n  hopscope run "));
  for (const char* command :
       {"run", "validate", "submit", "watch", "get", "list", "cancel", "results", "capabilities"}) {
    EXPECT_THAT(help, HasSubstr(std::string("\n  ") + command + " "));
    world_.ClearOutput();
    EXPECT_EQ(Run({command, "--help"}), kExitOk) << command;
    EXPECT_THAT(out(), StartsWith(std::string("Examples:\n  hopscope ") + command)) << command;
    EXPECT_THAT(out(), HasSubstr("--server"));
    EXPECT_THAT(out(), HasSubstr("--json"));
  }
}

TEST_F(AppTest, HelpOfRunDocumentsExitCodesAndInterrupts) {
  EXPECT_EQ(Run({"run", "--help"}), kExitOk);
  EXPECT_THAT(out(), AllOf(HasSubstr("Exit codes:"), HasSubstr("  5    the job was cancelled"),
                           HasSubstr("Ctrl-C")));
}

TEST_F(AppTest, HelpFitsATerminal) {
  for (const char* command : {"run", "results", "list", "capabilities"}) {
    world_.ClearOutput();
    Run({command, "--help"});
    std::istringstream lines(out());
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(line.size(), 110u) << command << ": " << line;
  }
}

TEST_F(AppTest, VersionIsPrinted) {
  EXPECT_EQ(Run({"--version"}), kExitOk);
  EXPECT_THAT(out(), StartsWith("hopscope "));
}

TEST_F(AppTest, WrongCommandLinesAreUsageErrors) {
  EXPECT_EQ(Run({}), kExitUsage);
  EXPECT_THAT(err(), StartsWith("Examples:\n"));
  world_.ClearOutput();
  EXPECT_EQ(Run({"wacth", "jobs/1"}), kExitUsage);
  EXPECT_THAT(err(), AllOf(HasSubstr("unknown command \"wacth\"; did you mean \"watch\"?"),
                           HasSubstr("run, validate, submit")));
  world_.ClearOutput();
  EXPECT_EQ(Run({"pause", "jobs/1"}), kExitUsage);
  EXPECT_THAT(err(), HasSubstr("unknown command \"pause\""));
  world_.ClearOutput();
  EXPECT_EQ(Run({"run"}), kExitUsage);
  EXPECT_THAT(err(), AllOf(HasSubstr("SPEC"), HasSubstr("hopscope run --help")));
  world_.ClearOutput();
  EXPECT_EQ(Run({"run", "x.yaml", "--wrokers", "3"}), kExitUsage);
  EXPECT_THAT(err(), HasSubstr("--wrokers"));
  world_.ClearOutput();
  EXPECT_EQ(Run({"run", "x.yaml", "--workers", "3"}), kExitUsage) << "only with --local";
  EXPECT_EQ(Run({"results", "1", "--gamma", "0.7"}), kExitUsage);
  EXPECT_EQ(Run({"list", "--limit", "0"}), kExitUsage);
  EXPECT_EQ(Run({"get"}), kExitUsage);
  EXPECT_EQ(out(), "");
}

TEST_F(AppTest, WrongCommandLinesAreToldAsJsonToo) {
  EXPECT_EQ(Run({"get", "--json"}), kExitUsage);
  EXPECT_EQ(nlohmann::json::parse(out())["error"]["reason"], "BAD_COMMAND_LINE");
}

TEST_F(AppTest, ServerIsTheOptionElseTheVariableElseTheDefault) {
  v1::ListEvalJobsResponse empty;
  EXPECT_CALL(connection(), ListEvalJobs(_)).WillOnce(Return(empty));
  EXPECT_EQ(Run({"list"}), kExitOk);
  EXPECT_EQ(world_.connect_options().server, "127.0.0.1:7070");
  EXPECT_FALSE(world_.connect_options().allow_insecure);
  world_.variables()["HOPSCOPE_SERVER"] = "10.0.0.1:1";
  world_.variables()["HOPSCOPE_TENANT"] = "lab";
  world_.NewConnection();
  EXPECT_CALL(connection(), ListEvalJobs(_)).WillOnce(Return(empty));
  EXPECT_EQ(Run({"list"}), kExitOk);
  EXPECT_EQ(world_.connect_options().server, "10.0.0.1:1");
  EXPECT_EQ(world_.connect_options().metadata.tenant, "lab");
  world_.NewConnection();
  EXPECT_CALL(connection(), ListEvalJobs(_)).WillOnce(Return(empty));
  EXPECT_EQ(Run({"list", "--server", "10.0.0.2:2", "--allow_insecure", "--tenant", "other"}),
            kExitOk);
  EXPECT_EQ(world_.connect_options().server, "10.0.0.2:2");
  EXPECT_TRUE(world_.connect_options().allow_insecure);
  EXPECT_EQ(world_.connect_options().metadata.tenant, "other");
}

TEST_F(AppTest, AServerThatIsNotThereSaysWhatToDo) {
  EXPECT_CALL(connection(), GetEvalJob(_))
      .WillOnce(Return(
          absl::UnavailableError("last error: UNKNOWN: ipv4:127.0.0.1:7070: Connection refused")));
  EXPECT_EQ(Run({"get", "1"}), kExitUnavailable);
  EXPECT_THAT(err(),
              AllOf(HasSubstr("cannot reach the server at 127.0.0.1:7070 (Connection refused)"),
                    HasSubstr("hopscope-server"), HasSubstr("--local"), HasSubstr("--server")));
}

TEST_F(AppTest, RunFollowsShowsAndSaves) {
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

TEST_F(AppTest, RunExitsWithTheJobsEnd) {
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

TEST_F(AppTest, RunWithJsonPrintsEventsAlone) {
  ServeJob(v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_EQ(Run({"run", Path("spec.yaml"), "--json", "--output", Path("out")}), kExitOk);
  std::istringstream lines(out());
  std::vector<nlohmann::json> events;
  for (std::string line; std::getline(lines, line);) events.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_TRUE(events[2].contains("jobFinished"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out" / "results.json"));
}

TEST_F(AppTest, RunRefusesAnOutputThatCannotBeWrittenBeforeItSubmits) {
  std::ofstream(folder_ / "file") << "x";
  EXPECT_CALL(connection(), CreateEvalJob(_)).Times(0);
  EXPECT_EQ(Run({"run", Path("spec.yaml"), "--output", Path("file")}), kExitError);
  EXPECT_THAT(err(), HasSubstr(Path("file")));
}

TEST_F(AppTest, BadSpecsAreRefusedWithTheirPlace) {
  std::ofstream(folder_ / "bad.yaml") << "tasks:\n  - task: number\n    hop: [1]\n";
  for (const char* command : {"run", "submit", "validate"}) {
    world_.ClearOutput();
    EXPECT_EQ(Run({command, Path("bad.yaml"), "--json"}), kExitUsage);
    EXPECT_THAT(
        err(),
        HasSubstr("bad.yaml:3:5: spec.tasks[0]: unknown key \"hop\"; did you mean \"hops\"?"));
    const auto error = nlohmann::json::parse(out())["error"];
    EXPECT_EQ(error["code"], "INVALID_ARGUMENT");
    EXPECT_EQ(error["field"], "spec.tasks[0].hop");
    EXPECT_EQ(error["line"], "3");
  }
  EXPECT_EQ(Run({"run", Path("missing.yaml")}), kExitError);
}

TEST_F(AppTest, ErrorsOfTheServerAreLocatedInTheSpec) {
  const absl::Status refused =
      common::InvalidField("HOPS_OUT_OF_RANGE", "spec.tasks[0].hops[1]", "9", "use 1 to 4");
  for (const char* command : {"run", "submit", "validate"}) {
    world_.NewConnection();
    world_.ClearOutput();
    EXPECT_CALL(connection(), CreateEvalJob(_)).WillOnce(Return(refused));
    EXPECT_EQ(Run({command, Path("spec.yaml"), "--json"}), kExitUsage) << command;
    EXPECT_THAT(err(),
                HasSubstr("spec.yaml:3:30: spec.tasks[0].hops[1]: 9 is not allowed; use 1 to 4"))
        << command;
    EXPECT_EQ(nlohmann::json::parse(out())["error"]["field"], "spec.tasks[0].hops[1]");
  }
}

TEST_F(AppTest, ValidatePrintsThePlan) {
  v1::CreateEvalJobResponse plan;
  plan.mutable_estimate()->set_cells(20);
  plan.mutable_estimate()->set_units(240);
  plan.mutable_estimate()->set_sequences(24000);
  plan.mutable_estimate()->set_tokens(3140000);
  plan.mutable_estimate()->set_flops(2.05e13);
  plan.mutable_estimate()->set_result_bytes(123456);
  plan.mutable_job()->add_checkpoints()->set_name("number/step-06750");
  plan.mutable_job()->add_warnings("vocabulary is larger");
  plan.mutable_job()->mutable_spec()->set_name("sweep");
  EXPECT_CALL(connection(), CreateEvalJob(_))
      .WillOnce([&](const v1::CreateEvalJobRequest& request) {
        EXPECT_TRUE(request.validate_only());
        return plan;
      });
  EXPECT_EQ(Run({"validate", Path("spec.yaml"), "--spec"}), kExitOk);
  EXPECT_EQ(out(), Path("spec.yaml") +
                       ": the spec is good; nothing was started\n"
                       "  cells        20\n"
                       "  units        240\n"
                       "  sequences    24,000\n"
                       "  tokens       3,140,000\n"
                       "  compute      20.5 TFLOP, estimated\n"
                       "  results      123 kB, estimated\n"
                       "  checkpoints  1\n"
                       "    number/step-06750\n"
                       "\n"
                       "name: sweep\n");
  EXPECT_EQ(err(), "warning: vocabulary is larger\n");
}

TEST_F(AppTest, SubmitPrintsTheNameAlone) {
  ServeJob(v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_EQ(Run({"submit", Path("spec.yaml")}), kExitOk);
  EXPECT_EQ(out(), "jobs/1\n");
  world_.NewConnection();
  ServeJob(v1::EvalJob::STATE_SUCCEEDED);
  world_.ClearOutput();
  EXPECT_EQ(Run({"submit", Path("spec.yaml"), "--json"}), kExitOk);
  EXPECT_EQ(nlohmann::json::parse(out())["name"], "jobs/1");
}

TEST_F(AppTest, TheSpecsTenantIsSentUnlessAnotherIsGiven) {
  std::ofstream(folder_ / "tenant.yaml") << "tenant: lab\n";
  ServeJob(v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_EQ(Run({"submit", Path("tenant.yaml")}), kExitOk);
  EXPECT_EQ(world_.connect_options().metadata.tenant, "lab");
}

TEST_F(AppTest, WatchPassesTheSequenceOn) {
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

TEST_F(AppTest, AnInterruptEndsAWatchAndLeavesTheJob) {
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

TEST_F(AppTest, ASecondInterruptLeavesARunAndSaysHowToFollow) {
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

TEST_F(AppTest, GetShowsAJob) {
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

TEST_F(AppTest, ListShowsJobs) {
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

TEST_F(AppTest, CancelSaysWhatBecameOfTheJob) {
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

TEST_F(AppTest, ResultsShowsSavesAndPrintsJson) {
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
}

TEST_F(AppTest, ManyTablesAreCutAndSaySo) {
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

TEST_F(AppTest, CapabilitiesAreShown) {
  v1::GetCapabilitiesResponse response;
  response.set_version("0.1.0");
  v1::TaskCapability* task = response.add_tasks();
  task->set_name("number");
  task->set_description("follow relative pointers");
  task->set_min_hops(1);
  task->set_max_hops(4);
  task->set_vocab_size(137);
  task->add_paddings("random");
  v1::ScorerCapability* scorer = response.add_scorers();
  scorer->set_name("positional_symbolic");
  scorer->add_metrics("positional");
  v1::ScorerParam* param = scorer->add_params();
  param->set_name("taus");
  param->mutable_default_value()->mutable_list_value()->add_values()->set_number_value(1e-4);
  param->set_allowed("above 0");
  response.add_dtypes(v1::DTYPE_FLOAT32);
  EXPECT_CALL(connection(), GetCapabilities(_)).WillOnce(Return(response));
  EXPECT_EQ(Run({"capabilities"}), kExitOk);
  EXPECT_THAT(out(), AllOf(HasSubstr("server 0.1.0"), HasSubstr("number: follow relative pointers"),
                           HasSubstr("hops 1 to 4"), HasSubstr("taus:"),
                           HasSubstr("default [0.0001]; above 0"), HasSubstr("float32")));
  world_.NewConnection();
  world_.ClearOutput();
  EXPECT_CALL(connection(), GetCapabilities(_)).WillOnce(Return(response));
  EXPECT_EQ(Run({"capabilities", "--json"}), kExitOk);
  EXPECT_EQ(nlohmann::json::parse(out())["version"], "0.1.0");
}

TEST_F(AppTest, CheckpointsAreListed) {
  v1::ListCheckpointsResponse response;
  v1::Checkpoint* good = response.add_checkpoints();
  good->mutable_ref()->set_name("number/step-06750");
  good->set_family("gptj");
  good->mutable_shape()->set_layers(12);
  good->set_weight_bytes(9622052);
  v1::Checkpoint* bad = response.add_checkpoints();
  bad->mutable_ref()->set_name("broken");
  bad->set_problem("no weights");
  EXPECT_CALL(connection(), ListCheckpoints(_))
      .WillOnce([&](const v1::ListCheckpointsRequest& request) {
        EXPECT_EQ(request.pattern(), "number/*");
        return response;
      });
  EXPECT_EQ(Run({"capabilities", "--checkpoints", "number/*"}), kExitOk);
  EXPECT_THAT(out(), AllOf(HasSubstr("number/step-06750  gptj"), HasSubstr("9,622,052"),
                           HasSubstr("cannot be used: no weights")));
  world_.NewConnection();
  EXPECT_CALL(connection(), ListCheckpoints(_)).WillOnce(Return(response));
  EXPECT_EQ(Run({"capabilities", "--checkpoints"}), kExitOk);
}

class FakeCluster : public LocalCluster {
 public:
  FakeCluster(absl::Status lost, bool* stopped) : lost_(std::move(lost)), stopped_(stopped) {}
  ~FakeCluster() override { *stopped_ = true; }
  const std::string& address() const override { return address_; }
  absl::Status lost() const override { return lost_; }

 private:
  const std::string address_ = "127.0.0.1:43210";
  const absl::Status lost_;
  bool* const stopped_;
};

TEST_F(AppTest, RunLocalUsesAClusterOfItsOwn) {
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

TEST_F(AppTest, RunLocalSaysWhyItsClusterWasLost) {
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

TEST_F(AppTest, ValidateLocalNeedsNoWorkers) {
  bool stopped = false;
  world_.environment().start_local_cluster =
      [&](LocalClusterOptions options) -> absl::StatusOr<std::unique_ptr<LocalCluster>> {
    EXPECT_EQ(options.workers, 0);
    return std::make_unique<FakeCluster>(absl::OkStatus(), &stopped);
  };
  EXPECT_CALL(connection(), CreateEvalJob(_)).WillOnce(Return(v1::CreateEvalJobResponse()));
  EXPECT_EQ(Run({"validate", Path("spec.yaml"), "--local"}), kExitOk);
  EXPECT_TRUE(stopped);
}

TEST_F(AppTest, AnInterruptWhileTheClusterStartsEndsTheCommand) {
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

// hopscope submit and validate, and what all commands with a spec do with a bad one.
#include <fstream>
#include <memory>
#include <string>

#include "client/cli/command_test_fixture.h"
#include "client/cli/exit_codes.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hopscope::cli {
namespace {

using ::testing::_;
using ::testing::HasSubstr;
using ::testing::Return;

using SubmitCommandsTest = CommandTest;

TEST_F(SubmitCommandsTest, BadSpecsAreRefusedWithTheirPlace) {
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
  EXPECT_EQ(Run({"run", Path("missing.yaml")}), kExitUsage);
  EXPECT_EQ(Run({"run", Path("")}), kExitUsage) << "a folder";
}

TEST_F(SubmitCommandsTest, ErrorsOfTheServerAreLocatedInTheSpec) {
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

TEST_F(SubmitCommandsTest, ASpecIsWrongWhateverTheCodeOfItsError) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kNotFound, absl::StatusCode::kFailedPrecondition}) {
    world_.NewConnection();
    EXPECT_CALL(connection(), CreateEvalJob(_))
        .WillOnce(Return(common::MakeError(code, "CHECKPOINT_NOT_FOUND", "no such checkpoint",
                                           {{"field", "spec.tasks[0].checkpoints[0]"}})));
    EXPECT_EQ(Run({"submit", Path("spec.yaml")}), kExitUsage);
  }
}

TEST_F(SubmitCommandsTest, ValidatePrintsThePlan) {
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

TEST_F(SubmitCommandsTest, SubmitPrintsTheNameAlone) {
  ServeJob(v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_EQ(Run({"submit", Path("spec.yaml")}), kExitOk);
  EXPECT_EQ(out(), "jobs/1\n");
  world_.NewConnection();
  ServeJob(v1::EvalJob::STATE_SUCCEEDED);
  world_.ClearOutput();
  EXPECT_EQ(Run({"submit", Path("spec.yaml"), "--json"}), kExitOk);
  EXPECT_EQ(nlohmann::json::parse(out())["name"], "jobs/1");
}

TEST_F(SubmitCommandsTest, TheSpecsTenantIsSentUnlessAnotherIsGiven) {
  std::ofstream(folder_ / "tenant.yaml") << "tenant: lab\n";
  ServeJob(v1::EvalJob::STATE_SUCCEEDED);
  EXPECT_EQ(Run({"submit", Path("tenant.yaml")}), kExitOk);
  EXPECT_EQ(world_.connect_options().metadata.tenant, "lab");
}

TEST_F(SubmitCommandsTest, ValidateLocalNeedsNoWorkers) {
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

}  // namespace
}  // namespace hopscope::cli

// The command line as a whole.
#include <cerrno>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli/command_test_fixture.h"
#include "client/cli/exit_codes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hopscope::cli {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Return;
using ::testing::StartsWith;

using AppTest = CommandTest;

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
  EXPECT_EQ(Run({"get", "1", "--first", "second"}), kExitUsage);
  EXPECT_THAT(err(), HasSubstr("not expected: --first second; see: hopscope get --help"));
  world_.ClearOutput();
  EXPECT_EQ(Run({"run", "x.yaml", "--workers", "3"}), kExitUsage) << "only with --local";
  EXPECT_EQ(Run({"results", "1", "--gamma", "0.7"}), kExitUsage);
  EXPECT_EQ(Run({"list", "--limit", "0"}), kExitUsage);
  EXPECT_EQ(Run({"get"}), kExitUsage);
  EXPECT_EQ(out(), "");
}

TEST_F(AppTest, BytesThatAreNoTextAreUsageErrorsWhereverTheyStand) {
  EXPECT_CALL(connection(), GetEvalJob(_)).Times(0);
  EXPECT_CALL(connection(), ListEvalJobs(_)).Times(0);
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"get", "jobs/\xff"},
                                                    {"list", "--filter", "label.a=\xc3"},
                                                    {"list", "--tenant=\xff"},
                                                    {"\xff"}}) {
    world_.ClearOutput();
    EXPECT_EQ(Run(arguments), kExitUsage);
    EXPECT_THAT(err(), AllOf(HasSubstr("\xef\xbf\xbd"), HasSubstr("is not valid UTF-8")));
  }
}

TEST_F(AppTest, WrongCommandLinesAreToldAsJsonToo) {
  EXPECT_EQ(Run({"get", "--json"}), kExitUsage);
  EXPECT_EQ(nlohmann::json::parse(out())["error"]["reason"], "BAD_COMMAND_LINE");
}

TEST_F(AppTest, OutputThatCannotBeWrittenIsAnErrorOfEveryCommand) {
  world_.environment().out_error = [] { return ENOSPC; };
  world_.out_stream().setstate(std::ios::badbit);
  ServeJob(v1::EvalJob::STATE_SUCCEEDED);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--help"}, {"--version"}, {"get", "1"}}) {
    world_.ClearOutput();
    EXPECT_EQ(Run(arguments), kExitError);
    EXPECT_EQ(err(), "error: cannot write standard output: No space left on device\n");
  }
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

}  // namespace
}  // namespace hopscope::cli

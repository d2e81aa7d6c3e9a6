// hopscope capabilities.
#include <string>

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

using CapabilitiesCommandTest = CommandTest;

TEST_F(CapabilitiesCommandTest, CapabilitiesAreShown) {
  v1::GetCapabilitiesResponse response;
  response.set_version("0.1.0");
  v1::TaskCapability* task = response.add_tasks();
  task->set_name("number");
  task->set_description("follow relative pointers");
  task->set_min_hops(1);
  task->set_max_hops(4);
  task->mutable_default_window();
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

TEST_F(CapabilitiesCommandTest, CheckpointsAreListed) {
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

}  // namespace
}  // namespace hopscope::cli

#include "client/cli/exit_codes.h"

#include "common/status.h"
#include "gtest/gtest.h"

namespace hopscope::cli {
namespace {

using absl::StatusCode;
using common::MakeError;

TEST(ExitCodesTest, WhatTheUserHasToChangeIsUsageWhateverItsCode) {
  for (const StatusCode code :
       {StatusCode::kNotFound, StatusCode::kFailedPrecondition, StatusCode::kResourceExhausted}) {
    for (const char* field : {"spec", "spec.tasks[0].checkpoints[0]", "--server"}) {
      EXPECT_EQ(ExitCodeOf(MakeError(code, "ANY", "", {{"field", field}})), kExitUsage);
    }
    for (const char* field : {"specimen", "name", "page_token"}) {
      EXPECT_EQ(ExitCodeOf(MakeError(code, "ANY", "", {{"field", field}})), kExitError) << field;
    }
    EXPECT_EQ(ExitCodeOf(MakeError(code, "JOB_NOT_FOUND", "")), kExitError);
    EXPECT_EQ(ExitCodeOf(MakeError(code, "FILE_NOT_FOUND", "")), kExitUsage);
  }
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), kExitUsage);
}

TEST(ExitCodesTest, AServerThatCannotServeIsUnavailableWhateverTheField) {
  EXPECT_EQ(ExitCodeOf(MakeError(StatusCode::kUnavailable, "STORE_UNAVAILABLE", "",
                                 {{"field", "spec.tasks"}})),
            kExitUnavailable);
}

}  // namespace
}  // namespace hopscope::cli

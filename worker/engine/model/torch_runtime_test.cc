#include "worker/engine/model/torch_runtime.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "common/status.h"

namespace hopscope::engine {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(CatchTorchTest, PassesStatusesThrough) {
  EXPECT_TRUE(CatchTorch([] { return absl::OkStatus(); }).ok());
  EXPECT_EQ(CatchTorch([] { return absl::CancelledError("stop"); }), absl::CancelledError("stop"));
}

TEST(CatchTorchTest, MemoryThatRunsOutIsToldFromOtherErrors) {
  const absl::Status too_big = CatchTorch([] {
    at::empty({int64_t{1} << 50}, at::kByte);
    return absl::OkStatus();
  });
  EXPECT_EQ(common::ErrorReason(too_big), "OUT_OF_MEMORY");
  EXPECT_EQ(too_big.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(common::ErrorReason(CatchTorch([]() -> absl::Status { throw std::bad_alloc(); })),
            "OUT_OF_MEMORY");

  const absl::Status wrong = CatchTorch([]() -> absl::Status {
    TORCH_CHECK(false, "sizes do not fit");
    return absl::OkStatus();
  });
  EXPECT_EQ(common::ErrorReason(wrong), "INTERNAL");
  EXPECT_THAT(wrong.message(), HasSubstr("sizes do not fit"));
  // For a log line, not a screen.
  EXPECT_THAT(wrong.message(), Not(HasSubstr("frame #")));
  EXPECT_EQ(
      common::ErrorReason(CatchTorch([]() -> absl::Status { throw std::runtime_error("odd"); })),
      "INTERNAL");
}

TEST(TorchRuntimeTest, NamesItsVersion) { EXPECT_THAT(TorchVersion(), HasSubstr("2.")); }

}  // namespace
}  // namespace hopscope::engine

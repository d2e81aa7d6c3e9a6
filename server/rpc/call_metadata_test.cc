#include "server/rpc/call_metadata.h"

#include <string>

#include "common/status.h"
#include "gtest/gtest.h"

namespace hopscope::rpc {
namespace {

constexpr char kTrace[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(ReadCallContext, DefaultsWhereNothingIsGiven) {
  const auto context = ReadCallContext({});
  ASSERT_TRUE(context.ok());
  EXPECT_EQ(context->tenant, "default");
  EXPECT_EQ(context->traceparent, "");
}

TEST(ReadCallContext, TakesTenantAndTrace) {
  const auto context =
      ReadCallContext({{"hopscope-tenant", "team-7.B_x"}, {"traceparent", kTrace}});
  ASSERT_TRUE(context.ok());
  EXPECT_EQ(context->tenant, "team-7.B_x");
  EXPECT_EQ(context->traceparent, kTrace);
}

TEST(ReadCallContext, RefusesTenantsThatAreNoNames) {
  const std::string long_name(64, 'a');
  for (const char* tenant : {"", "-x", ".", "a b", "a/b", "a\n", "\xc3\xa9", long_name.c_str()}) {
    const auto context = ReadCallContext({{"hopscope-tenant", tenant}});
    EXPECT_EQ(context.status().code(), absl::StatusCode::kInvalidArgument) << tenant;
    EXPECT_EQ(common::ErrorReason(context.status()), "TENANT_INVALID");
  }
  EXPECT_TRUE(ReadCallContext({{"hopscope-tenant", std::string(63, 'a')}}).ok());
}

TEST(ReadCallContext, RefusesTwoTenants) {
  EXPECT_EQ(ReadCallContext({{"hopscope-tenant", "a"}, {"hopscope-tenant", "b"}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ReadCallContext, LeavesOutWhatIsNoTrace) {
  for (const char* trace : {"", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
                            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"}) {
    const auto context = ReadCallContext({{"traceparent", trace}});
    ASSERT_TRUE(context.ok());
    EXPECT_EQ(context->traceparent, "") << trace;
  }
  EXPECT_EQ(ReadCallContext({{"traceparent", kTrace}, {"traceparent", kTrace}})->traceparent, "");
  EXPECT_NE(ReadCallContext(
                {{"traceparent", "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"}})
                ->traceparent,
            "");
}

}  // namespace
}  // namespace hopscope::rpc

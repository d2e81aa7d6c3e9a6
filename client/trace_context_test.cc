#include "client/trace_context.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::client {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(TraceContextTest, TraceparentsHaveOneTraceAndManySpans) {
  const TraceContext trace;
  EXPECT_THAT(trace.trace_id(), MatchesRegex("[0-9a-f]{32}"));
  const std::string first = trace.NewTraceparent();
  EXPECT_THAT(first, MatchesRegex("00-[0-9a-f]{32}-[0-9a-f]{16}-01"));
  EXPECT_THAT(first, HasSubstr(trace.trace_id()));
  EXPECT_NE(first, trace.NewTraceparent());
  EXPECT_NE(trace.trace_id(), TraceContext().trace_id());
}

TEST(RandomUuidTest, IsOfVersion4) {
  EXPECT_THAT(RandomUuid(),
              MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_NE(RandomUuid(), RandomUuid());
}

}  // namespace
}  // namespace hopscope::client

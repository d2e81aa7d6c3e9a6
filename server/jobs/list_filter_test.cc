#include "server/jobs/list_filter.h"

#include <string>
#include <utility>

#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

store::JobQuery Parse(const std::string& filter) {
  store::JobQuery query;
  const absl::Status status = ParseFilter(filter, query);
  EXPECT_TRUE(status.ok()) << status;
  return query;
}

TEST(ListFilterTest, NothingSelectsEverything) {
  for (const char* filter : {"", "  "}) {
    const store::JobQuery query = Parse(filter);
    EXPECT_FALSE(query.state.has_value());
    EXPECT_THAT(query.labels, IsEmpty());
    EXPECT_FALSE(query.created_from.has_value());
    EXPECT_FALSE(query.created_before.has_value());
  }
}

TEST(ListFilterTest, ComparisonsAreJoined) {
  const store::JobQuery query = Parse(
      "state=PARTIALLY_SUCCEEDED AND label.sweep = lengths AND label.a.b=\"two \\\"words\\\"\"  "
      "AND "
      "create_time>=2026-01-01T00:00:00Z AND create_time<2026-02-01T01:00:00+01:00");
  EXPECT_EQ(query.state, v1::EvalJob::STATE_PARTIALLY_SUCCEEDED);
  EXPECT_THAT(query.labels, ElementsAre(Pair("sweep", "lengths"), Pair("a.b", "two \"words\"")));
  EXPECT_EQ(absl::FormatTime(*query.created_from, absl::UTCTimeZone()),
            "2026-01-01T00:00:00+00:00");
  EXPECT_EQ(absl::FormatTime(*query.created_before, absl::UTCTimeZone()),
            "2026-02-01T00:00:00+00:00");
}

TEST(ListFilterTest, TimesAreBoundsOfWholeMicroseconds) {
  const absl::Time second = absl::FromCivil(absl::CivilSecond(2026, 1, 1), absl::UTCTimeZone());
  const absl::Duration us = absl::Microseconds(1);
  EXPECT_EQ(Parse("create_time>=2026-01-01T00:00:00Z").created_from, second);
  EXPECT_EQ(Parse("create_time>2026-01-01T00:00:00Z").created_from, second + us);
  EXPECT_EQ(Parse("create_time<2026-01-01T00:00:00Z").created_before, second);
  EXPECT_EQ(Parse("create_time<=2026-01-01T00:00:00Z").created_before, second + us);
  // Between two microseconds.
  EXPECT_EQ(Parse("create_time>=2026-01-01T00:00:00.0000001Z").created_from, second + us);
  EXPECT_EQ(Parse("create_time>2026-01-01T00:00:00.0000001Z").created_from, second + us);
  EXPECT_EQ(Parse("create_time<2026-01-01T00:00:00.0000001Z").created_before, second + us);
  EXPECT_EQ(Parse("create_time<=2026-01-01T00:00:00.0000001Z").created_before, second + us);
  // The tighter of two.
  EXPECT_EQ(
      Parse("create_time>=2026-01-01T00:00:00Z AND create_time>=2025-01-01T00:00:00Z").created_from,
      second);
}

TEST(ListFilterTest, WhatIsNoFilterIsRefused) {
  for (const char* filter : {"state",
                             "state=",
                             "state=running",
                             "state=UNSPECIFIED",
                             "state=STATE_RUNNING",
                             "state!=RUNNING",
                             "state=RUNNING AND state=FAILED",
                             "state=RUNNING OR state=FAILED",
                             "state=RUNNING AND",
                             "AND state=RUNNING",
                             "state=RUNNING label.a=b",
                             "label.=x",
                             "label.a>b",
                             "labels.a=b",
                             "name=x",
                             "create_time=2026-01-01T00:00:00Z",
                             "create_time>yesterday",
                             "create_time>infinite-future",
                             "label.a=\"open",
                             "label.a=\"\\n\"",
                             "=RUNNING",
                             "\"",
                             "state=RUNNING; DROP TABLE jobs"}) {
    store::JobQuery query;
    const absl::Status status = ParseFilter(filter, query);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << filter;
    EXPECT_EQ(common::ErrorReason(status), "FILTER_INVALID") << filter;
    EXPECT_EQ(common::GetErrorInfo(status)->metadata().at("field"), "filter");
  }
}

TEST(ListFilterTest, OrdersAreTwo) {
  store::JobQuery query;
  ASSERT_TRUE(ParseOrder("create_time", query).ok());
  EXPECT_FALSE(query.newest_first);
  ASSERT_TRUE(ParseOrder(" create_time  desc ", query).ok());
  EXPECT_TRUE(query.newest_first);
  query.newest_first = false;
  ASSERT_TRUE(ParseOrder("", query).ok());
  EXPECT_TRUE(query.newest_first);
  for (const char* order : {"name", "create_time asc desc", "create_time DESC", "desc"}) {
    const absl::Status status = ParseOrder(order, query);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << order;
    EXPECT_THAT(std::string(status.message()), HasSubstr("order_by"));
  }
}

}  // namespace
}  // namespace hopscope::jobs

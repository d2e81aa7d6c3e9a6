#include "server/jobs/page_token.h"

#include <limits>
#include <string>

#include "absl/strings/escaping.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::jobs {
namespace {

using ::testing::ElementsAre;

TEST(PageTokenTest, ATokenLeadsBackToItsCursor) {
  const int64_t least = std::numeric_limits<int64_t>::min();
  const std::string token = MakePageToken("jobs", {least, 7});
  EXPECT_THAT(ReadPageToken("jobs", token, 2).value(), ElementsAre(least, 7));
}

TEST(PageTokenTest, ATokenOfAnotherListOrNoneAtAllIsRefused) {
  const std::string token = MakePageToken("jobs\nstate=RUNNING", {1, 2});
  std::string changed = token;
  changed[5] = changed[5] == 'A' ? 'B' : 'A';
  for (const auto& [list, bad, size] :
       {std::tuple<std::string, std::string, size_t>{"jobs\nstate=FAILED", token, 2},
        {"jobs\nstate=RUNNING", token, 1},
        {"jobs\nstate=RUNNING", changed, 2},
        {"jobs\nstate=RUNNING", "", 2},
        {"jobs\nstate=RUNNING", "%%%", 2},
        {"jobs\nstate=RUNNING", absl::WebSafeBase64Escape("1.1.2.0"), 2}}) {
    const auto read = ReadPageToken(list, bad, size);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(common::ErrorReason(read.status()), "PAGE_TOKEN_INVALID");
    EXPECT_EQ(common::GetErrorInfo(read.status())->metadata().at("field"), "page_token");
  }
}

TEST(PageTokenTest, PageSizesAreCappedAndNotNegative) {
  EXPECT_EQ(PageSize(0, 50, 1000).value(), 50);
  EXPECT_EQ(PageSize(7, 50, 1000).value(), 7);
  EXPECT_EQ(PageSize(1'000'000, 50, 1000).value(), 1000);
  EXPECT_EQ(PageSize(-1, 50, 1000).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hopscope::jobs

#include "server/jobs/names.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "gtest/gtest.h"

namespace hopscope::jobs {
namespace {

TEST(NamesTest, JobIdsSortByTimeAndDiffer) {
  std::string last;
  std::set<std::string> ids;
  for (const int64_t ms : {0, 1, 31, 32, 1'800'000'000, 2'000'000'000}) {
    const absl::Time now = absl::FromUnixMillis(ms * 1000);
    const std::string id = NewJobId(now);
    EXPECT_GT(id, last);
    last = id;
    for (int i = 0; i < 100; ++i) ids.insert(NewJobId(now));
    EXPECT_EQ(ParseJobName(JobName(id)).value(), id);
  }
  EXPECT_EQ(ids.size(), 600u);
}

TEST(NamesTest, MalformedJobNamesAreRefusedByField) {
  const std::string good = JobName(NewJobId(absl::UnixEpoch()));
  ASSERT_TRUE(ParseJobName(good).ok());
  for (const std::string& bad :
       {std::string(), std::string("jobs/"), std::string("jobs"), good.substr(5),
        absl::StrCat(good, "0"), good.substr(0, good.size() - 1),
        absl::StrCat("job/", good.substr(5)),
        absl::StrCat("jobs/", std::string(26, 'z')),  // more than 128 bits
        absl::StrCat("jobs/", std::string(26, 'u')),  // no such digit
        absl::StrCat("jobs/", std::string(26, 'A')), absl::StrCat(good, "/cells")}) {
    const auto parsed = ParseJobName(bad, "some.field");
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(common::GetErrorInfo(parsed.status())->metadata().at("field"), "some.field");
  }
}

TEST(NamesTest, WorkerIdsAreChecked) {
  EXPECT_TRUE(CheckWorkerId("workers/a-B_9.x").ok());
  EXPECT_TRUE(CheckWorkerId(absl::StrCat("workers/", std::string(64, 'a'))).ok());
  for (const std::string& bad :
       {std::string(), std::string("workers/"), std::string("a"), std::string("workers/a b"),
        std::string("workers/a/b"), std::string("workers/\n"),
        absl::StrCat("workers/", std::string(65, 'a'))}) {
    EXPECT_EQ(CheckWorkerId(bad).code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(NamesTest, AttemptIdsSayWhatTheyAreOf) {
  const AttemptName attempt = {.job_id = NewJobId(absl::UnixEpoch()),
                               .cell = 7,
                               .unit = 1'000'000,
                               .number = 3,
                               .nonce = 0x7fff'ffff'ffff'ffff};
  const std::string id = FormatAttemptId(attempt);
  const auto parsed = ParseAttemptId(id);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->job_id, attempt.job_id);
  EXPECT_EQ(parsed->cell, 7);
  EXPECT_EQ(parsed->unit, 1'000'000);
  EXPECT_EQ(parsed->number, 3);
  EXPECT_EQ(parsed->nonce, attempt.nonce);
  for (const std::string& bad :
       {std::string(), std::string("a/b/c/d/e"), absl::StrCat(id, "/0"), absl::StrCat(" ", id),
        absl::StrCat(attempt.job_id, "/07/1/1/1"), absl::StrCat(attempt.job_id, "/7/1/1/0x1"),
        absl::StrCat(attempt.job_id, "/7/1/1/F"), absl::StrCat(attempt.job_id, "/7/1/1")}) {
    EXPECT_EQ(ParseAttemptId(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(NamesTest, NoncesAreNotNegativeAndDiffer) {
  std::set<int64_t> nonces;
  for (int i = 0; i < 1000; ++i) {
    const int64_t nonce = RandomNonce();
    EXPECT_GE(nonce, 0);
    nonces.insert(nonce);
  }
  EXPECT_EQ(nonces.size(), 1000u);
}

}  // namespace
}  // namespace hopscope::jobs

#include "worker/link/unit_outcome.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "gtest/gtest.h"

namespace hopscope::link {
namespace {

constexpr int64_t kPart = 1000;

v1::UnitResult ResultWithScores(int values) {
  v1::UnitResult result;
  result.set_items(values);
  v1::ScoreMoments* scores = result.add_scores();
  for (int i = 0; i < values; ++i) scores->add_mean(i + 0.5);
  return result;
}

TEST(UnitOutcomeTest, PartsOfAResultAreBoundedAndJoinToIt) {
  const v1::UnitResult result = ResultWithScores(1000);
  const UnitOutcome outcome = UnitOutcome::Result({.attempt_id = "a1"}, result);
  ASSERT_GT(outcome.PartCount(kPart), 7);
  std::string joined;
  for (int i = 0; i < outcome.PartCount(kPart); ++i) {
    const v1::ReportUnitRequest part = outcome.Part(i, kPart);
    EXPECT_EQ(part.attempt_id(), "a1");
    EXPECT_EQ(part.part(), i);
    EXPECT_EQ(part.part_count(), outcome.PartCount(kPart));
    EXPECT_LE(part.result_part().size(), kPart);
    joined += part.result_part();
  }
  v1::UnitResult parsed;
  ASSERT_TRUE(parsed.ParseFromString(joined));
  EXPECT_EQ(parsed.SerializeAsString(), result.SerializeAsString());
}

TEST(UnitOutcomeTest, ResultThatFillsItsPartsExactlyHasNoEmptyPart) {
  const UnitOutcome outcome = UnitOutcome::Result({}, ResultWithScores(100));
  const int64_t size = outcome.size_bytes();
  ASSERT_EQ(size % 2, 0) << "choose another number of scores";
  EXPECT_EQ(outcome.PartCount(size), 1);
  EXPECT_EQ(outcome.PartCount(size / 2), 2);
  EXPECT_EQ(outcome.PartCount(size - 1), 2);
}

TEST(UnitOutcomeTest, EmptyResultIsOnePart) {
  const UnitOutcome outcome = UnitOutcome::Result({}, v1::UnitResult());
  ASSERT_EQ(outcome.PartCount(kPart), 1);
  EXPECT_TRUE(outcome.Part(0, kPart).has_result_part());
}

TEST(UnitOutcomeTest, FailureKeepsTheReasonsThatAnAttemptMayHave) {
  for (const char* reason : {"CHECKPOINT", "OUT_OF_MEMORY", "TIMEOUT", "INTERNAL"}) {
    const UnitOutcome outcome = UnitOutcome::Failure(
        {}, common::MakeError(absl::StatusCode::kResourceExhausted, reason, "what happened"));
    const v1::Failure failure = outcome.Part(0, kPart).failure();
    EXPECT_EQ(failure.reason(), reason);
    EXPECT_EQ(failure.message(), "what happened");
  }
}

TEST(UnitOutcomeTest, FailureWithAnotherReasonIsInternalAndSaysWhich) {
  const v1::Failure failure = UnitOutcome::Failure({}, common::MakeError(absl::StatusCode::kUnknown,
                                                                         "ODD", "what happened"))
                                  .Part(0, kPart)
                                  .failure();
  EXPECT_EQ(failure.reason(), "INTERNAL");
  EXPECT_EQ(failure.message(), "ODD: what happened");
  EXPECT_EQ(UnitOutcome::Failure({}, absl::UnknownError("plain")).Part(0, kPart).failure().reason(),
            "INTERNAL");
}

TEST(UnitOutcomeTest, LongMessageIsCutBetweenCharacters) {
  std::string message(1023, 'x');
  message += "\u00e9\u00e9";
  const v1::Failure failure =
      UnitOutcome::Failure({}, common::MakeError(absl::StatusCode::kInternal, "INTERNAL", message))
          .Part(0, kPart)
          .failure();
  EXPECT_EQ(failure.message(), std::string(1023, 'x'));
}

TEST(UnitOutcomeTest, LabelNamesJobUnitAttemptAndTrace) {
  v1::UnitLease lease;
  lease.set_attempt_id("a7");
  lease.mutable_unit()->set_job("jobs/j1");
  lease.mutable_unit()->mutable_ref()->set_cell_index(3);
  lease.mutable_unit()->mutable_ref()->set_unit_index(14);
  lease.mutable_unit()->set_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  const UnitLabel label = LabelOf(lease);
  EXPECT_EQ(label.job, "jobs/j1");
  EXPECT_EQ(label.unit, "3/14");
  EXPECT_EQ(label.attempt_id, "a7");
  EXPECT_EQ(label.trace_id, "0af7651916cd43dd8448eb211c80319c");
}

}  // namespace
}  // namespace hopscope::link

#include "common/status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::common {
namespace {

using ::testing::HasSubstr;

TEST(StatusTest, AnErrorCarriesItsReasonAndMetadata) {
  const absl::Status status = InvalidField("HOPS_OUT_OF_RANGE", "spec.hops", "9", "use 1 to 4");
  EXPECT_EQ(status.message(), "spec.hops: 9 is not allowed; use 1 to 4");
  EXPECT_EQ(ErrorReason(status), "HOPS_OUT_OF_RANGE");
  const auto info = GetErrorInfo(Annotate(status, "here"));
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->domain(), kErrorDomain);
  EXPECT_EQ(info->metadata().at("field"), "spec.hops");
}

TEST(StatusTest, BytesThatAreNoTextDoNotCostTheMetadata) {
  const absl::Status status = InvalidField("BAD", "spec.name", "a\xef", "use text");
  EXPECT_THAT(std::string(status.message()), HasSubstr("a\xef\xbf\xbd is not allowed"));
  const auto info = GetErrorInfo(status);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->metadata().at("field"), "spec.name");
  EXPECT_EQ(info->metadata().at("value"), "a\xef\xbf\xbd");
}

TEST(StatusTest, AnErrorWithoutAReasonIsNamedByItsCode) {
  EXPECT_EQ(ErrorReason(absl::NotFoundError("x")), "NOT_FOUND");
}

}  // namespace
}  // namespace hopscope::common

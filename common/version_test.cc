#include "common/version.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::common {
namespace {

using ::testing::StartsWith;

TEST(Version, TextAndMessageAgree) {
  const v1::Version version = ProgramVersion();
  EXPECT_EQ(VersionString(),
            absl::StrCat(version.major(), ".", version.minor(), ".", version.patch()));
  EXPECT_GT(version.major() + version.minor() + version.patch(), 0);
}

TEST(Version, TextNamesTheProgramFirst) {
  EXPECT_THAT(VersionText("hopscope-server"),
              StartsWith(absl::StrCat("hopscope-server ", VersionString(), " (")));
}

}  // namespace
}  // namespace hopscope::common

#include "server/health.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::server {
namespace {

using ::testing::ElementsAre;

class HealthTest : public ::testing::Test {
 protected:
  void Start() {
    health_.Start([this](bool serving) { told_.push_back(serving); });
  }

  Health health_;
  std::vector<bool> told_;
};

TEST_F(HealthTest, IsNotThereBeforeTheServerIs) {
  EXPECT_TRUE(absl::IsUnavailable(health_.Check()));
  Start();
  EXPECT_TRUE(health_.Check().ok());
  EXPECT_THAT(told_, ElementsAre(true));
}

TEST_F(HealthTest, FollowsTheStoreAndTellsChangesOnce) {
  Start();
  health_.SetStore(absl::OkStatus());
  health_.SetStore(absl::UnavailableError("disk is full"));
  health_.SetStore(absl::UnavailableError("disk is still full"));
  EXPECT_EQ(health_.Check().message(), "disk is still full");
  health_.SetStore(absl::OkStatus());
  EXPECT_TRUE(health_.Check().ok());
  EXPECT_THAT(told_, ElementsAre(true, false, true));
}

TEST_F(HealthTest, AnOperationThatFailsCountsAtOnceAndOutweighsAProbeThatWorks) {
  Start();
  health_.StoreFailed(absl::UnavailableError("disk is full"));
  EXPECT_EQ(health_.Check().message(), "disk is full");
  // Small enough to fit, while everything else fails.
  for (int i = 0; i < 3; ++i) {
    health_.SetStore(absl::OkStatus());
    EXPECT_FALSE(health_.Check().ok());
    health_.StoreFailed(absl::UnavailableError("disk is full"));
  }
  health_.SetStore(absl::OkStatus());
  health_.SetStore(absl::OkStatus());
  EXPECT_TRUE(health_.Check().ok());
  EXPECT_THAT(told_, ElementsAre(true, false, true));
}

TEST_F(HealthTest, AStoreThatWasNeverUsableIsToldAtTheStart) {
  health_.SetStore(absl::UnavailableError("disk is full"));
  Start();
  EXPECT_THAT(told_, ElementsAre(false));
}

TEST_F(HealthTest, NothingBringsADrainingServerBack) {
  Start();
  health_.Drain();
  health_.SetStore(absl::UnavailableError("disk is full"));
  health_.SetStore(absl::OkStatus());
  EXPECT_TRUE(absl::IsUnavailable(health_.Check()));
  EXPECT_THAT(told_, ElementsAre(true, false));
}

}  // namespace
}  // namespace hopscope::server

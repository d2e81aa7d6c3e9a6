#include "client/client.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/mock_connection.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::client {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::Return;

class ClientTest : public testing::Test {
 protected:
  std::shared_ptr<MockConnection> connection_ = std::make_shared<MockConnection>();
  Client client_{connection_};
};

TEST(JobNameTest, TakesIdsAndNames) {
  EXPECT_EQ(JobName("jobs/abc"), "jobs/abc");
  EXPECT_EQ(JobName("abc"), "jobs/abc");
}

TEST_F(ClientTest, EachNewJobHasARequestIdOfItsOwn) {
  std::vector<std::string> ids;
  EXPECT_CALL(*connection_, CreateEvalJob(_))
      .Times(2)
      .WillRepeatedly([&](const v1::CreateEvalJobRequest& request) {
        ids.push_back(request.request_id());
        EXPECT_FALSE(request.validate_only());
        v1::CreateEvalJobResponse response;
        response.mutable_job()->set_name("jobs/1");
        return response;
      });
  EXPECT_EQ(client_.CreateEvalJob({})->name(), "jobs/1");
  EXPECT_TRUE(client_.CreateEvalJob({}).ok());
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_FALSE(ids[0].empty());
  EXPECT_NE(ids[0], ids[1]);
}

TEST_F(ClientTest, ValidateStoresNothing) {
  EXPECT_CALL(*connection_, CreateEvalJob(_)).WillOnce([](const v1::CreateEvalJobRequest& request) {
    EXPECT_TRUE(request.validate_only());
    return v1::CreateEvalJobResponse();
  });
  EXPECT_TRUE(client_.ValidateEvalJob({}).ok());
}

TEST_F(ClientTest, ListsOverPagesUpToTheLimit) {
  std::vector<std::pair<std::string, int>> asked;
  EXPECT_CALL(*connection_, ListEvalJobs(_))
      .WillRepeatedly([&](const v1::ListEvalJobsRequest& request) {
        EXPECT_EQ(request.filter(), "state=RUNNING");
        asked.emplace_back(request.page_token(), request.page_size());
        v1::ListEvalJobsResponse response;
        for (int i = 0; i < 2; ++i)
          response.add_jobs()->set_name(absl::StrCat("jobs/", asked.size(), i));
        response.set_next_page_token(absl::StrCat("after", asked.size()));
        return response;
      });
  const auto jobs = client_.ListEvalJobs("state=RUNNING", 5);
  ASSERT_TRUE(jobs.ok());
  EXPECT_EQ(jobs->size(), 5u);
  EXPECT_EQ(jobs->back().name(), "jobs/30");
  EXPECT_THAT(asked, ElementsAre(std::pair("", 5), std::pair("after1", 3), std::pair("after2", 1)));
}

TEST_F(ClientTest, ReadsResultsPageByPageUntilToldToStop) {
  int pages = 0;
  EXPECT_CALL(*connection_, ListEvalResults(_))
      .WillRepeatedly([&](const v1::ListEvalResultsRequest& request) {
        EXPECT_EQ(request.page_token(), pages == 0 ? "" : absl::StrCat("p", pages));
        v1::ListEvalResultsResponse response;
        if (++pages < 3) response.set_next_page_token(absl::StrCat("p", pages));
        return response;
      });
  EXPECT_TRUE(client_.ReadEvalResults("jobs/1", [](const auto&) { return absl::OkStatus(); }).ok());
  EXPECT_EQ(pages, 3);
  pages = 0;
  EXPECT_EQ(
      client_.ReadEvalResults("jobs/1", [](const auto&) { return absl::DataLossError("disk"); }),
      absl::DataLossError("disk"));
  EXPECT_EQ(pages, 1);
}

TEST_F(ClientTest, AServerThatRepeatsAPageIsAnErrorNotALoop) {
  v1::ListCheckpointsResponse response;
  response.set_next_page_token("same");
  EXPECT_CALL(*connection_, ListCheckpoints(_)).WillRepeatedly(Return(response));
  EXPECT_EQ(common::ErrorReason(client_.ListCheckpoints("*").status()), "PAGE_REPEATED");
}

TEST_F(ClientTest, ErrorsAreThoseOfTheConnection) {
  EXPECT_CALL(*connection_, CancelEvalJob(_))
      .WillOnce(Return(absl::FailedPreconditionError("finished")));
  EXPECT_EQ(client_.CancelEvalJob("jobs/1").status(), absl::FailedPreconditionError("finished"));
}

}  // namespace
}  // namespace hopscope::client

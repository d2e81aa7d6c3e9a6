#include "client/retrying_connection.h"

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "client/mock_stub.h"
#include "common/rpc/grpc_status.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::client {
namespace {

using ::testing::_;
using ::testing::InSequence;
using ::testing::NiceMock;
using ::testing::Return;

class RetryingConnectionTest : public testing::Test {
 protected:
  RetryingConnectionTest() : clock_(absl::UnixEpoch()) {
    options_.clock = &clock_;
    options_.seed = 1;
    options_.cancellation = &cancellation_;
    options_.pause = [this](absl::Duration wait, Cancellation&) {
      pauses_.push_back(wait);
      clock_.Advance(wait);
    };
    options_.on_retry = [this](const RetryNotice& notice) { notices_.push_back(notice); };
  }

  std::unique_ptr<Connection> Make() { return MakeConnection(std::move(stub_), options_); }

  common::FakeClock clock_;
  Cancellation cancellation_;
  ConnectionOptions options_;
  std::vector<absl::Duration> pauses_;
  std::vector<RetryNotice> notices_;
  std::unique_ptr<MockStub> stub_ = std::make_unique<MockStub>();
};

const absl::Status& Gone() {
  static const absl::Status& status =
      *new absl::Status(absl::StatusCode::kUnavailable, "connection refused");
  return status;
}

v1::GetEvalJobResponse Job(const std::string& name) {
  v1::GetEvalJobResponse response;
  response.mutable_job()->set_name(name);
  return response;
}

TEST_F(RetryingConnectionTest, TriesAgainUntilTheServerIsBack) {
  {
    InSequence sequence;
    EXPECT_CALL(*stub_, GetEvalJob(_, _)).Times(3).WillRepeatedly(Return(Gone()));
    EXPECT_CALL(*stub_, GetEvalJob(_, _)).WillOnce(Return(Job("jobs/1")));
  }
  const auto response = Make()->GetEvalJob({});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->job().name(), "jobs/1");
  ASSERT_EQ(notices_.size(), 3u);
  EXPECT_EQ(notices_[0].method, "GetEvalJob");
  EXPECT_EQ(notices_[0].error, Gone());
  EXPECT_EQ(notices_[0].wait, pauses_[0]);
}

TEST_F(RetryingConnectionTest, PausesGrowWithJitterUpToTheirBound) {
  options_.backoff = {.initial = absl::Seconds(1), .max = absl::Seconds(4)};
  options_.retry_for = absl::Seconds(60);
  EXPECT_CALL(*stub_, GetEvalJob(_, _)).WillRepeatedly(Return(Gone()));
  EXPECT_EQ(Make()->GetEvalJob({}).status(), Gone());
  ASSERT_GT(pauses_.size(), 5u);
  const double bounds[] = {1, 2, 4, 4, 4};
  for (int i = 0; i < 5; ++i) {
    EXPECT_GE(absl::ToDoubleSeconds(pauses_[i]), bounds[i] / 2);
    EXPECT_LE(absl::ToDoubleSeconds(pauses_[i]), bounds[i]);
  }
  EXPECT_NE(pauses_[3], pauses_[4]) << "no jitter";
}

TEST_F(RetryingConnectionTest, GivesUpAfterTheGivenTime) {
  options_.retry_for = absl::Seconds(3);
  EXPECT_CALL(*stub_, GetEvalJob(_, _)).WillRepeatedly(Return(Gone()));
  EXPECT_EQ(Make()->GetEvalJob({}).status(), Gone());
  EXPECT_LE(clock_.Now() - absl::UnixEpoch(), absl::Seconds(3));
  EXPECT_GE(clock_.Now() - absl::UnixEpoch(), absl::Seconds(1));
}

TEST_F(RetryingConnectionTest, TimeCountsFromTheFirstFailureNotFromTheStart) {
  options_.retry_for = absl::Seconds(3);
  InSequence sequence;
  EXPECT_CALL(*stub_, CreateEvalJob(_, _)).WillOnce([this](auto&, auto&) {
    clock_.Advance(absl::Minutes(5));  // reads digests, then its pod goes
    return Gone();
  });
  EXPECT_CALL(*stub_, CreateEvalJob(_, _)).WillOnce(Return(v1::CreateEvalJobResponse()));
  v1::CreateEvalJobRequest request;
  request.set_request_id("r");
  EXPECT_TRUE(Make()->CreateEvalJob(request).ok());
}

TEST_F(RetryingConnectionTest, CreateIsTriedAgainOnlyWhereThatIsSafe) {
  v1::CreateEvalJobRequest plain;
  v1::CreateEvalJobRequest with_id;
  with_id.set_request_id("r1");
  v1::CreateEvalJobRequest validate;
  validate.set_validate_only(true);
  std::vector<std::string> ids;
  EXPECT_CALL(*stub_, CreateEvalJob(_, _))
      .WillRepeatedly([&](auto&, const v1::CreateEvalJobRequest& request) {
        ids.push_back(request.request_id());
        return Gone();
      });
  const auto connection = Make();
  EXPECT_EQ(connection->CreateEvalJob(plain).status(), Gone());
  EXPECT_EQ(ids.size(), 1u);
  EXPECT_EQ(connection->CreateEvalJob(validate).status(), Gone());
  EXPECT_GT(ids.size(), 2u);
  ids.clear();
  EXPECT_EQ(connection->CreateEvalJob(with_id).status(), Gone());
  EXPECT_GT(ids.size(), 1u);
  for (const std::string& id : ids) EXPECT_EQ(id, "r1");
}

TEST_F(RetryingConnectionTest, ErrorsThatTheServerMeantAreReturnedAtOnce) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound,
        absl::StatusCode::kAlreadyExists, absl::StatusCode::kFailedPrecondition,
        absl::StatusCode::kResourceExhausted, absl::StatusCode::kUnauthenticated,
        absl::StatusCode::kPermissionDenied, absl::StatusCode::kUnimplemented,
        absl::StatusCode::kInternal, absl::StatusCode::kDeadlineExceeded,
        absl::StatusCode::kDataLoss}) {
    const absl::Status error = common::MakeError(code, "REASON", "message");
    EXPECT_FALSE(IsTransient(error));
    stub_ = std::make_unique<MockStub>();
    EXPECT_CALL(*stub_, GetEvalJob(_, _)).WillOnce(Return(error));
    EXPECT_EQ(Make()->GetEvalJob({}).status(), error);
  }
  EXPECT_TRUE(pauses_.empty());
}

TEST_F(RetryingConnectionTest, StreamsThatTheTransportResetAreTransient) {
  EXPECT_TRUE(IsTransient(absl::InternalError("Received RST_STREAM with error code 2")));
  EXPECT_FALSE(
      IsTransient(common::MakeError(absl::StatusCode::kInternal, "X", "Received RST_STREAM")));
  EXPECT_TRUE(IsTransient(absl::CancelledError("server shutting down")));
}

TEST_F(RetryingConnectionTest, WaitsAsLongAsTheServerAsks) {
  InSequence sequence;
  EXPECT_CALL(*stub_, ListEvalJobs(_, _))
      .WillOnce(Return(common::WithRetryDelay(Gone(), absl::Seconds(7))));
  EXPECT_CALL(*stub_, ListEvalJobs(_, _)).WillOnce(Return(v1::ListEvalJobsResponse()));
  EXPECT_TRUE(Make()->ListEvalJobs({}).ok());
  EXPECT_THAT(pauses_, testing::ElementsAre(absl::Seconds(7)));
}

TEST_F(RetryingConnectionTest, EveryCallHasADeadline) {
  options_.call_timeout = absl::Seconds(30);
  options_.create_timeout = absl::Seconds(500);
  const auto seconds_left = [](const grpc::ClientContext& context) {
    return std::chrono::duration<double>(context.deadline() - std::chrono::system_clock::now())
        .count();
  };
  EXPECT_CALL(*stub_, GetEvalJob(_, _)).WillOnce([&](grpc::ClientContext& context, auto&) {
    EXPECT_NEAR(seconds_left(context), 30, 10);
    return Job("jobs/1");
  });
  EXPECT_CALL(*stub_, CreateEvalJob(_, _)).WillOnce([&](grpc::ClientContext& context, auto&) {
    EXPECT_NEAR(seconds_left(context), 500, 10);
    return v1::CreateEvalJobResponse();
  });
  const auto connection = Make();
  EXPECT_TRUE(connection->GetEvalJob({}).ok());
  EXPECT_TRUE(connection->CreateEvalJob({}).ok());
}

TEST_F(RetryingConnectionTest, CancellationEndsAPauseFromAnotherThread) {
  options_.pause = nullptr;
  options_.clock = common::Clock::Real();
  options_.retry_for = absl::Hours(1);
  options_.backoff = {.initial = absl::Hours(1), .max = absl::Hours(1)};
  EXPECT_CALL(*stub_, GetEvalJob(_, _)).WillOnce(Return(Gone()));
  std::thread canceller;
  options_.on_retry = [&](const RetryNotice&) {
    canceller = std::thread([this] { cancellation_.Cancel(); });
  };
  EXPECT_EQ(Make()->GetEvalJob({}).status().code(), absl::StatusCode::kCancelled);
  canceller.join();
}

TEST_F(RetryingConnectionTest, NothingIsCalledAfterCancellation) {
  cancellation_.Cancel();
  EXPECT_CALL(*stub_, GetEvalJob(_, _)).Times(0);
  EXPECT_EQ(Make()->GetEvalJob({}).status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace hopscope::client

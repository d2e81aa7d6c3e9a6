#include "common/rpc/grpc_status.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/credentials.h"
#include "common/status.h"
#include "common/utf8.h"
#include "google/protobuf/util/message_differencer.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "hopscope/v1/admin.grpc.pb.h"

namespace hopscope::common {
namespace {

google::rpc::Status Details(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  return details;
}

TEST(ToGrpcStatus, OkHasNoDetails) {
  const grpc::Status status = ToGrpcStatus(absl::OkStatus());
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(status.error_details().empty());
  EXPECT_TRUE(FromGrpcStatus(status).ok());
}

TEST(ToGrpcStatus, CarriesOneErrorInfoThereAndBack) {
  const absl::Status before =
      InvalidField("HOPS_OUT_OF_RANGE", "spec.tasks[0].hops[3]", "9", "use 1 to 4");
  const grpc::Status wire = ToGrpcStatus(before);
  EXPECT_EQ(wire.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const google::rpc::Status details = Details(wire);
  EXPECT_EQ(details.code(), 3);
  EXPECT_EQ(details.message(), wire.error_message());
  ASSERT_EQ(details.details_size(), 1);

  const absl::Status after = FromGrpcStatus(wire);
  EXPECT_EQ(after.code(), before.code());
  EXPECT_EQ(after.message(), before.message());
  ASSERT_TRUE(GetErrorInfo(after).has_value());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*GetErrorInfo(after),
                                                                 *GetErrorInfo(before)));
}

TEST(ToGrpcStatus, EveryCodeSurvives) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status before(static_cast<absl::StatusCode>(code), "m");
    const absl::Status after = FromGrpcStatus(ToGrpcStatus(before));
    EXPECT_EQ(after.code(), before.code());
    EXPECT_EQ(GetErrorInfo(after)->reason(), absl::StatusCodeToString(before.code()));
    EXPECT_EQ(GetErrorInfo(after)->domain(), kErrorDomain);
  }
}

TEST(ToGrpcStatus, CutsMessagesBetweenCharacters) {
  std::string message(1, 'x');
  while (message.size() < 3000) message += "漢";
  const grpc::Status wire = ToGrpcStatus(absl::NotFoundError(message));
  EXPECT_EQ(wire.error_message().size(), 1024u);
  EXPECT_EQ(ReplaceInvalidUtf8(wire.error_message()), wire.error_message());
  EXPECT_EQ(wire.error_message(), message.substr(0, 1024));
}

TEST(ToGrpcStatus, MakesMessagesValidUtf8) {
  const grpc::Status wire = ToGrpcStatus(absl::NotFoundError("no \xff here"));
  EXPECT_EQ(Details(wire).message(), "no \xef\xbf\xbd here");
}

TEST(ToGrpcStatus, ServerFaultsKeepTheirInsides) {
  absl::Status fault = MakeError(absl::StatusCode::kInternal, "STORE_BROKEN", "cannot read the job",
                                 {{"sql", "SELECT secret"}});
  fault.SetPayload("type.googleapis.com/google.rpc.DebugInfo", absl::Cord("stack"));
  const absl::Status after = FromGrpcStatus(ToGrpcStatus(fault));
  EXPECT_EQ(after.message(), "cannot read the job");
  EXPECT_EQ(GetErrorInfo(after)->reason(), "STORE_BROKEN");
  EXPECT_TRUE(GetErrorInfo(after)->metadata().empty());
  EXPECT_FALSE(after.GetPayload("type.googleapis.com/google.rpc.DebugInfo").has_value());
}

TEST(ToGrpcStatus, RetryDelaySurvives) {
  const absl::Status before =
      WithRetryDelay(absl::UnavailableError("busy"), absl::Milliseconds(1500));
  EXPECT_EQ(GetRetryDelay(FromGrpcStatus(ToGrpcStatus(before))), absl::Milliseconds(1500));
  EXPECT_EQ(GetRetryDelay(absl::UnavailableError("busy")), std::nullopt);
}

TEST(FromGrpcStatus, LeavesOutDetailsThatDoNotFit) {
  const absl::Status garbage =
      FromGrpcStatus(grpc::Status(grpc::StatusCode::NOT_FOUND, "m", "\xff\xff\xff"));
  EXPECT_EQ(garbage, absl::NotFoundError("m"));
  const grpc::Status other = ToGrpcStatus(absl::InternalError("m"));
  EXPECT_EQ(FromGrpcStatus(grpc::Status(grpc::StatusCode::NOT_FOUND, "m", other.error_details())),
            absl::NotFoundError("m"));
}

class FailingService : public v1::AdminService::CallbackService {
 public:
  explicit FailingService(absl::Status status) : status_(std::move(status)) {}

  grpc::ServerUnaryReactor* GetQueueStatus(grpc::CallbackServerContext* context,
                                           const v1::GetQueueStatusRequest*,
                                           v1::GetQueueStatusResponse*) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(ToGrpcStatus(status_));
    return reactor;
  }

 private:
  const absl::Status status_;
};

TEST(ToGrpcStatus, TheLargestErrorReachesAClientWithDefaultSettings) {
  std::string wide;
  while (wide.size() < 20000) wide += "漢";
  FailingService service(WithRetryDelay(
      MakeError(absl::StatusCode::kInvalidArgument, std::string(200, 'R'), wide,
                {{"field", wide}, {"value", wide}, {"allowed", wide}, {"more", wide}}),
      absl::Hours(1)));
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);

  const auto stub = v1::AdminService::NewStub(
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), MakeChannelCredentials()));
  grpc::ClientContext context;
  v1::GetQueueStatusResponse response;
  const absl::Status status = FromGrpcStatus(stub->GetQueueStatus(&context, {}, &response));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), CutUtf8(wide, 1024));
  ASSERT_TRUE(GetErrorInfo(status).has_value());
  EXPECT_EQ(GetErrorInfo(status)->reason(), std::string(63, 'R'));
  EXPECT_EQ(GetErrorInfo(status)->metadata().count("field"), 1u);
  EXPECT_EQ(GetRetryDelay(status), absl::Hours(1));
  server->Shutdown();
}

}  // namespace
}  // namespace hopscope::common

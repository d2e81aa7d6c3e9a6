#include "common/rpc/transport.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/credentials.h"
#include "common/status.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "hopscope/v1/dispatch.grpc.pb.h"

namespace hopscope::common {
namespace {

// Answers a report with nothing.
class SilentService : public v1::DispatchService::CallbackService {
 public:
  grpc::ServerUnaryReactor* ReportUnit(grpc::CallbackServerContext* context,
                                       const v1::ReportUnitRequest*,
                                       v1::ReportUnitResponse*) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

std::unique_ptr<grpc::Server> StartServer(grpc::Service* service, int* port) {
  grpc::ServerBuilder builder;
  ApplyTransportLimits(builder);
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", *port), grpc::InsecureServerCredentials(),
                           port);
  builder.RegisterService(service);
  return builder.BuildAndStart();
}

grpc::StatusCode Report(int port, int bytes, const grpc::ChannelArguments& arguments) {
  const auto stub = v1::DispatchService::NewStub(grpc::CreateCustomChannel(
      absl::StrCat("127.0.0.1:", port), MakeChannelCredentials(), arguments));
  grpc::ClientContext context;
  v1::ReportUnitRequest request;
  request.set_result_part(std::string(bytes, 'x'));
  v1::ReportUnitResponse response;
  return stub->ReportUnit(&context, request, &response).error_code();
}

TEST(Transport, RefusesLargerMessagesOnBothEnds) {
  SilentService service;
  int port = 0;
  const std::unique_ptr<grpc::Server> server = StartServer(&service, &port);
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(Report(port, kMaxMessageBytes - 100, MakeChannelArguments()), grpc::StatusCode::OK);
  EXPECT_EQ(Report(port, kMaxMessageBytes + 1, MakeChannelArguments()),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  // A client without limits of its own meets the server's.
  EXPECT_EQ(Report(port, kMaxMessageBytes + 1, grpc::ChannelArguments()),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  server->Shutdown();
}

TEST(Transport, TwoServersDoNotShareAPort) {
  SilentService service;
  SilentService second_service;
  int port = 0;
  const std::unique_ptr<grpc::Server> server = StartServer(&service, &port);
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(StartServer(&second_service, &port), nullptr);
  server->Shutdown();
}

TEST(Credentials, RefuseAddressesThatOtherMachinesReach) {
  EXPECT_TRUE(MakeServerCredentials({}, {"127.0.0.1", 0}).ok());
  EXPECT_TRUE(MakeServerCredentials({.allow_insecure = true}, {"0.0.0.0", 0}).ok());
  const absl::Status status = MakeServerCredentials({}, {"0.0.0.0", 7070}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ErrorReason(status), "INSECURE_ADDRESS");
  EXPECT_NE(status.message().find("--allow_insecure"), absl::string_view::npos);
}

}  // namespace
}  // namespace hopscope::common

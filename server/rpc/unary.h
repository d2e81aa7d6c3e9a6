// Handlers of unary calls that are answered at once: off gRPC's thread, work, convert, record.
#ifndef HOPSCOPE_SERVER_RPC_UNARY_H_
#define HOPSCOPE_SERVER_RPC_UNARY_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/call_record.h"
#include "server/rpc/runtime.h"

namespace hopscope::rpc {

// Answers with what `body(const Request&)`, an absl::StatusOr<Response>, returns on the executor. A
// call that was given up before its turn came is dropped. Never blocks.
template <class Request, class Response, class Body>
grpc::ServerUnaryReactor* AnswerUnary(Runtime& runtime, Method method,
                                      grpc::CallbackServerContext* context, const Request* request,
                                      Response* response, Body body) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const CallRecord record(&runtime.metrics, method, &context->client_metadata());
  const bool submitted = runtime.executor.TrySubmit(
      [record, reactor, context, request, response, body = std::move(body)] {
        if (context->IsCancelled()) {
          reactor->Finish(record.End(AbandonedError()));
          return;
        }
        absl::StatusOr<Response> answer = body(*request);
        if (answer.ok()) *response = *std::move(answer);
        reactor->Finish(record.End(answer.status()));
      });
  if (!submitted) reactor->Finish(record.End(BusyError()));
  return reactor;
}

inline absl::Status UnimplementedError(Method method) {
  return common::MakeError(absl::StatusCode::kUnimplemented, "METHOD_NOT_IMPLEMENTED",
                           absl::StrCat(MethodName(method), " is not implemented by this server"),
                           {{"method", std::string(MethodName(method))}});
}

inline grpc::ServerUnaryReactor* RefuseUnary(Runtime& runtime, Method method,
                                             grpc::CallbackServerContext* context) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const CallRecord record(&runtime.metrics, method, &context->client_metadata());
  reactor->Finish(record.End(UnimplementedError(method)));
  return reactor;
}

// The same for a streaming call: a reactor (of ServerReadReactor or ServerWriteReactor) that does
// nothing else.
template <class Reactor>
Reactor* RefuseStream(Runtime& runtime, Method method, grpc::CallbackServerContext* context) {
  class Refusal : public Reactor {
   public:
    void OnDone() override { delete this; }
  };
  const CallRecord record(&runtime.metrics, method, &context->client_metadata());
  auto* reactor = new Refusal;
  reactor->Finish(record.End(UnimplementedError(method)));
  return reactor;
}

}  // namespace hopscope::rpc

#endif  // HOPSCOPE_SERVER_RPC_UNARY_H_

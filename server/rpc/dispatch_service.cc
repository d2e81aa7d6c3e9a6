#include "server/rpc/dispatch_service.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/logging.h"
#include "server/rpc/long_poll.h"
#include "server/rpc/unary.h"

namespace hopscope::rpc {
namespace {

// Heartbeats keep leases alive, so that they get more room than the search for new work.
constexpr int kHeartbeatTriesAtOnce = 8;

absl::Duration Wait(int64_t asked_ms, absl::Duration most) {
  return std::clamp(absl::Milliseconds(asked_ms), absl::ZeroDuration(), most);
}

// Units that were leased for a caller who is gone. Without this they would wait until their leases
// run out.
void HandBack(jobs::Dispatcher* dispatcher, const v1::LeaseUnitsRequest& request,
              const v1::LeaseUnitsResponse& response) {
  for (const v1::UnitLease& lease : response.leases()) {
    v1::ReportUnitRequest report;
    report.set_worker_id(request.worker_id());
    report.set_attempt_id(lease.attempt_id());
    report.set_part_count(1);
    report.mutable_hand_back()->set_reason("undelivered");
    if (const auto answer = dispatcher->ReportUnit(report); !answer.ok()) {
      common::Log(spdlog::level::warn, "lease not taken back",
                  {{"worker", request.worker_id()},
                   {"attempt", lease.attempt_id()},
                   {"error", answer.status()}});
    }
  }
}

}  // namespace

DispatchService::DispatchService(Options options, Runtime* runtime, jobs::Dispatcher* dispatcher,
                                 jobs::UploadedTokens* tokens, jobs::Signals* signals)
    : options_(options),
      runtime_(*runtime),
      dispatcher_(dispatcher),
      tokens_(tokens),
      signals_(signals),
      lease_lane_(&runtime->executor, options.lease_tries_at_once),
      heartbeat_lane_(&runtime->executor, kHeartbeatTriesAtOnce) {}

grpc::ServerUnaryReactor* DispatchService::RegisterWorker(grpc::CallbackServerContext* context,
                                                          const v1::RegisterWorkerRequest* request,
                                                          v1::RegisterWorkerResponse* response) {
  return AnswerUnary(runtime_, Method::kRegisterWorker, context, request, response,
                     [this](const v1::RegisterWorkerRequest& worker) {
                       return dispatcher_->RegisterWorker(worker);
                     });
}

grpc::ServerUnaryReactor* DispatchService::LeaseUnits(grpc::CallbackServerContext* context,
                                                      const v1::LeaseUnitsRequest* request,
                                                      v1::LeaseUnitsResponse* response) {
  const CallRecord record(&runtime_.metrics, Method::kLeaseUnits, &context->client_metadata());
  const auto poll = std::make_shared<LongPoll>(
      &runtime_, &lease_lane_, record,
      [this, request, response]() -> absl::StatusOr<bool> {
        HOPSCOPE_ASSIGN_OR_RETURN(*response, dispatcher_->LeaseUnits(*request));
        return response->leases_size() > 0;
      },
      [this, request, response] { HandBack(dispatcher_, *request, *response); });
  poll->Start(Wait(request->wait_ms(), options_.max_lease_wait),
              [this](std::function<void()> wake) { return signals_->OnWork(std::move(wake)); });
  return poll.get();
}

grpc::ServerUnaryReactor* DispatchService::Heartbeat(grpc::CallbackServerContext* context,
                                                     const v1::HeartbeatRequest* request,
                                                     v1::HeartbeatResponse* response) {
  const CallRecord record(&runtime_.metrics, Method::kHeartbeat, &context->client_metadata());
  const auto poll = std::make_shared<LongPoll>(
      &runtime_, &heartbeat_lane_, record,
      [this, request, response]() -> absl::StatusOr<bool> {
        HOPSCOPE_ASSIGN_OR_RETURN(jobs::Dispatcher::HeartbeatAnswer answer,
                                  dispatcher_->Heartbeat(*request));
        *response = std::move(answer.response);
        return answer.urgent;
      },
      nullptr);
  poll->Start(Wait(request->wait_ms(), options_.max_heartbeat_wait),
              [this, request](std::function<void()> wake) {
                return signals_->OnWorker(request->worker_id(), std::move(wake));
              });
  return poll.get();
}

grpc::ServerUnaryReactor* DispatchService::ReportUnit(grpc::CallbackServerContext* context,
                                                      const v1::ReportUnitRequest* request,
                                                      v1::ReportUnitResponse* response) {
  return AnswerUnary(
      runtime_, Method::kReportUnit, context, request, response,
      [this](const v1::ReportUnitRequest& report) { return dispatcher_->ReportUnit(report); });
}

grpc::ServerUnaryReactor* DispatchService::FetchTokens(grpc::CallbackServerContext* context,
                                                       const v1::FetchTokensRequest* request,
                                                       v1::FetchTokensResponse* response) {
  return AnswerUnary(runtime_, Method::kFetchTokens, context, request, response,
                     [this](const v1::FetchTokensRequest& fetch) { return tokens_->Fetch(fetch); });
}

}  // namespace hopscope::rpc

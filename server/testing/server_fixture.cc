#include "server/testing/server_fixture.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/address.h"
#include "common/ops/http_get.h"
#include "common/rpc/credentials.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/transport.h"
#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"
#include "server/jobs/testing/fake_worker.h"
#include "server/store/sqlite_store.h"

namespace hopscope::server::testing {

using common::FromGrpcStatus;

ServerTest::ServerTest() {
  using checkpoint::testing::GptJ;
  checkpoint::testing::WriteCheckpoint(models_folder_, "number",
                                       GptJ{.vocab_size = 137, .seed = 1});
  checkpoint::testing::WriteCheckpoint(models_folder_, "letter",
                                       GptJ{.vocab_size = 129, .seed = 2});
  options_.listen = "127.0.0.1:0";
  options_.metrics_listen = "127.0.0.1:0";
  options_.model_root = models_folder_.path();
  options_.probe_interval = absl::Milliseconds(20);
}

void ServerTest::StartServer() {
  auto sqlite = store::SqliteStore::Open({.path = state_folder_.Path("hopscope.db")});
  ASSERT_TRUE(sqlite.ok()) << sqlite.status();
  auto probed = std::make_unique<ProbedStore>(*std::move(sqlite));
  store_ = probed.get();
  Server::Options options;
  options.listen = options_.listen;
  options.metrics_listen = options_.metrics_listen;
  options.model_root = options_.model_root;
  options.lease_duration = options_.lease_duration;
  options.reflection = options_.reflection;
  options.probe_interval = options_.probe_interval;
  options.executor = options_.executor;
  options.store = std::move(probed);
  auto server = Server::Start(std::move(options));
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  Connect();
}

void ServerTest::Connect() {
  const std::shared_ptr<grpc::Channel> channel = NewChannel();
  evaluation_ = v1::EvaluationService::NewStub(channel);
  dispatch_ = v1::DispatchService::NewStub(channel);
  admin_ = v1::AdminService::NewStub(channel);
}

void ServerTest::StopServer(absl::Duration grace) {
  server_->Shutdown(grace);
  server_.reset();
  store_ = nullptr;
}

std::shared_ptr<grpc::Channel> ServerTest::NewChannel(grpc::ChannelArguments arguments) const {
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(server_->address(), common::MakeChannelCredentials(), arguments);
}

v1::EvalJobSpec ServerTest::SpecWithCells(int cells) {
  v1::EvalJobSpec spec;
  v1::TaskSpec* task = spec.add_tasks();
  task->set_task("number");
  task->add_hops(1);
  for (int i = 0; i < cells; ++i) task->add_added_tokens(i);
  task->set_samples(1);
  task->add_checkpoints("number");
  spec.add_scorers()->set_name("accuracy");
  return spec;
}

absl::StatusOr<v1::EvalJob> ServerTest::TryCreate(const v1::EvalJobSpec& spec) {
  grpc::ClientContext context;
  v1::CreateEvalJobRequest request;
  *request.mutable_spec() = spec;
  v1::CreateEvalJobResponse response;
  const grpc::Status status = evaluation_->CreateEvalJob(&context, request, &response);
  if (!status.ok()) return FromGrpcStatus(status);
  return response.job();
}

std::string ServerTest::Create(const v1::EvalJobSpec& spec) {
  const absl::StatusOr<v1::EvalJob> job = TryCreate(spec);
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? job->name() : "";
}

absl::StatusOr<v1::EvalJob> ServerTest::Get(const std::string& job) {
  grpc::ClientContext context;
  v1::GetEvalJobRequest request;
  request.set_name(job);
  v1::GetEvalJobResponse response;
  const grpc::Status status = evaluation_->GetEvalJob(&context, request, &response);
  if (!status.ok()) return FromGrpcStatus(status);
  return response.job();
}

absl::StatusOr<v1::EvalJob> ServerTest::Cancel(const std::string& job) {
  grpc::ClientContext context;
  v1::CancelEvalJobRequest request;
  request.set_name(job);
  v1::CancelEvalJobResponse response;
  const grpc::Status status = evaluation_->CancelEvalJob(&context, request, &response);
  if (!status.ok()) return FromGrpcStatus(status);
  return response.job();
}

void ServerTest::AddWarnings(const std::string& job, int count, int bytes_each) {
  const absl::Status status =
      store_->Write("test", [&](store::Transaction& transaction) -> absl::Status {
        auto found = transaction.FindJob(absl::string_view(job).substr(sizeof("jobs/") - 1));
        if (!found.ok()) return found.status();
        store::JobRow row = **found;
        for (int i = 0; i < count; ++i) {
          v1::EvalEvent event;
          event.set_sequence(++row.last_sequence);
          event.mutable_warning()->set_reason("TEST");
          event.mutable_warning()->set_message(std::string(bytes_each, 'w'));
          if (absl::Status inserted = transaction.InsertEvent(row.key, event); !inserted.ok()) {
            return inserted;
          }
        }
        return transaction.UpdateJob(row);
      });
  ASSERT_TRUE(status.ok()) << status;
}

std::string ServerTest::Metric(const std::string& name) const {
  const auto address = common::ParseHostPort("", server_->metrics_address());
  const ops::HttpAnswer answer = ops::HttpGet(*address, "/metrics");
  EXPECT_EQ(answer.code, 200);
  std::string samples;
  for (const absl::string_view line : absl::StrSplit(answer.body, '\n')) {
    if (absl::StartsWith(line, absl::StrCat(name, "{")) ||
        absl::StartsWith(line, absl::StrCat(name, " "))) {
      absl::StrAppend(&samples, line, "\n");
    }
  }
  return samples;
}

double ServerTest::Sample(const std::string& name_and_labels) const {
  const std::string name = name_and_labels.substr(0, name_and_labels.find('{'));
  for (const absl::string_view line : absl::StrSplit(Metric(name), '\n')) {
    double value = 0;
    if (absl::StartsWith(line, absl::StrCat(name_and_labels, " ")) &&
        absl::SimpleAtod(line.substr(name_and_labels.size() + 1), &value)) {
      return value;
    }
  }
  ADD_FAILURE() << "no sample " << name_and_labels;
  return -1;
}

StubWorker::StubWorker(v1::DispatchService::Stub* stub, const std::string& id)
    : stub_(stub), id_(absl::StrCat("workers/", id)) {
  grpc::ClientContext context;
  v1::RegisterWorkerRequest request;
  request.set_worker_id(id_);
  *request.mutable_description() = jobs::testing::AbleWorker();
  v1::RegisterWorkerResponse response;
  const grpc::Status status = stub_->RegisterWorker(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

absl::StatusOr<v1::LeaseUnitsResponse> StubWorker::Lease(int max_units, absl::Duration wait,
                                                         grpc::ClientContext* context) {
  grpc::ClientContext own_context;
  v1::LeaseUnitsRequest request;
  request.set_worker_id(id_);
  request.set_max_units(max_units);
  request.set_wait_ms(absl::ToInt64Milliseconds(wait));
  v1::LeaseUnitsResponse response;
  const grpc::Status status =
      stub_->LeaseUnits(context != nullptr ? context : &own_context, request, &response);
  if (!status.ok()) return FromGrpcStatus(status);
  return response;
}

absl::StatusOr<v1::HeartbeatResponse> StubWorker::Heartbeat(const std::vector<v1::UnitLease>& held,
                                                            absl::Duration wait) {
  grpc::ClientContext context;
  v1::HeartbeatRequest request;
  request.set_worker_id(id_);
  for (const v1::UnitLease& lease : held) request.add_attempt_ids(lease.attempt_id());
  request.set_wait_ms(absl::ToInt64Milliseconds(wait));
  v1::HeartbeatResponse response;
  const grpc::Status status = stub_->Heartbeat(&context, request, &response);
  if (!status.ok()) return FromGrpcStatus(status);
  return response;
}

absl::StatusOr<v1::ReportUnitResponse> StubWorker::Complete(const v1::UnitLease& lease) {
  grpc::ClientContext context;
  v1::ReportUnitRequest request;
  request.set_worker_id(id_);
  request.set_attempt_id(lease.attempt_id());
  request.set_part_count(1);
  request.set_result_part(jobs::testing::ComputeUnit(lease.unit()).SerializeAsString());
  v1::ReportUnitResponse response;
  const grpc::Status status = stub_->ReportUnit(&context, request, &response);
  if (!status.ok()) return FromGrpcStatus(status);
  return response;
}

int StubWorker::RunAll() {
  for (int units = 0;;) {
    const absl::StatusOr<v1::LeaseUnitsResponse> leased = Lease(16, absl::ZeroDuration());
    EXPECT_TRUE(leased.ok()) << leased.status();
    if (!leased.ok() || leased->leases().empty()) return units;
    for (const v1::UnitLease& lease : leased->leases()) {
      const absl::StatusOr<v1::ReportUnitResponse> report = Complete(lease);
      EXPECT_TRUE(report.ok()) << report.status();
      ++units;
    }
  }
}

Watched Watch(v1::EvaluationService::Stub* stub, const std::string& job, int64_t after_sequence,
              size_t max_durable) {
  Watched watched;
  grpc::ClientContext context;
  v1::WatchEvalJobRequest request;
  request.set_name(job);
  request.set_after_sequence(after_sequence);
  const auto reader = stub->WatchEvalJob(&context, request);
  for (v1::WatchEvalJobResponse response; reader->Read(&response);) {
    if (response.event().sequence() == 0) {
      watched.live.push_back(response.event());
    } else if (max_durable == 0 || watched.durable.size() < max_durable) {
      watched.durable.push_back(response.event());
      if (watched.durable.size() == max_durable) context.TryCancel();
    }
  }
  watched.status = FromGrpcStatus(reader->Finish());
  return watched;
}

}  // namespace hopscope::server::testing

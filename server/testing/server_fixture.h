// For tests: a whole server in this process, on ports that the system chose and a SQLite file in a
// temporary folder, with small models, and a real channel to it.
#ifndef HOPSCOPE_SERVER_TESTING_SERVER_FIXTURE_H_
#define HOPSCOPE_SERVER_TESTING_SERVER_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/checkpoint/testing/write_checkpoint.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/channel_arguments.h"
#include "gtest/gtest.h"
#include "hopscope/v1/admin.grpc.pb.h"
#include "hopscope/v1/dispatch.grpc.pb.h"
#include "hopscope/v1/evaluation.grpc.pb.h"
#include "server/server.h"
#include "server/testing/probed_store.h"

namespace hopscope::server::testing {

class ServerTest : public ::testing::Test {
 protected:
  // Writes models "number" (137 token ids) and "letter" (129).
  ServerTest();

  // Starts options_ on a store that store_ looks into. Once, or again after StopServer().
  void StartServer();
  void StopServer(absl::Duration grace = absl::Seconds(10));

  // Makes the stubs for server_.
  void Connect();
  // A channel of its own: no connection is shared with other channels.
  std::shared_ptr<grpc::Channel> NewChannel(
      grpc::ChannelArguments arguments = grpc::ChannelArguments()) const;

  // One task entry with so many cells of one item each.
  static v1::EvalJobSpec SpecWithCells(int cells);

  absl::StatusOr<v1::EvalJob> TryCreate(const v1::EvalJobSpec& spec);
  // Creates a job that must be accepted; returns its name.
  std::string Create(const v1::EvalJobSpec& spec);
  absl::StatusOr<v1::EvalJob> Get(const std::string& job);
  absl::StatusOr<v1::EvalJob> Cancel(const std::string& job);

  // Writes warnings of so many bytes into a job's events, without telling anybody.
  void AddWarnings(const std::string& job, int count, int bytes_each);

  // A text with every sample of a metric family, one a line; empty where the server shows none.
  std::string Metric(const std::string& name) const;
  // The value of one sample, with its labels as /metrics writes them.
  double Sample(const std::string& name_and_labels) const;

  checkpoint::testing::TempFolder models_folder_;
  checkpoint::testing::TempFolder state_folder_;
  Server::Options options_;
  ProbedStore* store_ = nullptr;  // the running server's
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::EvaluationService::Stub> evaluation_;
  std::unique_ptr<v1::DispatchService::Stub> dispatch_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
};

// A worker over the raw stub, whose results depend on each item alone.
class StubWorker {
 public:
  // Registers, which must work. `stub` must outlive the worker.
  StubWorker(v1::DispatchService::Stub* stub, const std::string& id);

  const std::string& id() const { return id_; }
  absl::StatusOr<v1::LeaseUnitsResponse> Lease(int max_units, absl::Duration wait,
                                               grpc::ClientContext* context = nullptr);
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const std::vector<v1::UnitLease>& held,
                                                  absl::Duration wait);
  absl::StatusOr<v1::ReportUnitResponse> Complete(const v1::UnitLease& lease);
  // Computes whatever there is. Returns how many units those were.
  int RunAll();

 private:
  v1::DispatchService::Stub* const stub_;
  const std::string id_;
};

// What a watch brought, and how it ended.
struct Watched {
  std::vector<v1::EvalEvent> durable;
  std::vector<v1::EvalEvent> live;
  absl::Status status;
};

// Follows a job to the end of the stream, or cuts the stream after `max_durable` durable events (0:
// does not).
Watched Watch(v1::EvaluationService::Stub* stub, const std::string& job, int64_t after_sequence = 0,
              size_t max_durable = 0);

}  // namespace hopscope::server::testing

#endif  // HOPSCOPE_SERVER_TESTING_SERVER_FIXTURE_H_

// A server and workers of one's own, for the time of one command: what --local starts.
#ifndef HOPSCOPE_CLIENT_CLI_LOCAL_CLUSTER_H_
#define HOPSCOPE_CLIENT_CLI_LOCAL_CLUSTER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cancellation.h"

namespace hopscope::cli {

struct LocalClusterOptions {
  std::string model_root = ".";
  // 0: none, which is enough to check a spec.
  int workers = 1;
  // CPU threads of each worker; 0: the machine's, shared evenly.
  int threads = 0;
  // Value of the workers' --device.
  std::string device = "auto";
  std::string server_program;
  std::string worker_program;
  // See ChildProcessOptions; may be empty.
  std::string launcher;
  // Until the server, and then all workers, are ready.
  absl::Duration start_timeout = absl::Seconds(60);
  // From SIGTERM to SIGKILL.
  absl::Duration stop_timeout = absl::Seconds(10);
  // Told what happens to a program while the cluster runs, from another thread. May be empty.
  std::function<void(const std::string&)> on_message;
  // Ends the start with CANCELLED, and makes the stop short. It is also cancelled, with lost() set,
  // where the cluster can go on no more. Must outlive the cluster.
  client::Cancellation* cancellation = nullptr;
};

// Thread-safe.
class LocalCluster {
 public:
  // Stops everything.
  virtual ~LocalCluster() = default;

  // HOST:PORT of the server.
  virtual const std::string& address() const = 0;

  // Why the cluster can go on no more (the server or all workers ended by themselves); OK where it
  // can.
  virtual absl::Status lost() const = 0;
};

// Programs listen on loopback, on ports that the system chooses; their state, logs and ready files
// are in a temporary folder that is removed at the end. Returns when all are ready.
// FAILED_PRECONDITION, reason PROGRAM_ENDED or PROGRAM_NOT_READY, says which program failed and
// shows the end of its log.
absl::StatusOr<std::unique_ptr<LocalCluster>> StartLocalCluster(LocalClusterOptions options);

// Where the programs of this build are: beside the running program, unless $HOPSCOPE_SERVER_PROGRAM
// and $HOPSCOPE_WORKER_PROGRAM say otherwise. Fills in server_program, worker_program and launcher.
void FindPrograms(const std::function<std::string(const std::string&)>& getenv,
                  LocalClusterOptions* options);

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_LOCAL_CLUSTER_H_

// A whole Hopscope server in one object: store, jobs, RPC services, health, metrics endpoint.
// main() adds flags and signals; tests start it in their own process.
#ifndef HOPSCOPE_SERVER_SERVER_H_
#define HOPSCOPE_SERVER_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "server/rpc/executor.h"
#include "server/store/store.h"

namespace hopscope::server {

// Thread-safe.
class Server {
 public:
  struct Options {
    // HOST:PORT of gRPC; port 0: the system chooses one.
    std::string listen = "127.0.0.1:7070";
    // HOST:PORT of /metrics, /livez and /readyz; port 0: the system chooses one; empty: none.
    std::string metrics_listen = "127.0.0.1:7071";
    // Folder of the database; made where it is missing.
    std::string state_dir;
    // Folder that checkpoints live under.
    std::string model_root;
    // A lease that no heartbeat renews for so long ends; at least 100 ms.
    absl::Duration lease_duration = absl::Seconds(30);
    // Attempts at a unit before it fails for good; at least 1.
    int max_attempts = 4;
    // Lets `listen` be an address that other machines reach, though nothing is encrypted.
    bool allow_insecure = false;
    // Serves gRPC reflection.
    bool reflection = true;
    // How often the store's health is probed.
    absl::Duration probe_interval = absl::Seconds(3);
    // Threads that may block, and calls that wait for one.
    rpc::Executor::Options executor;
    // Takes the place of the database in state_dir, for tests.
    std::unique_ptr<store::Store> store;
    // Must outlive the server.
    const common::Clock* clock = common::Clock::Real();
  };

  // Serves from now on. Errors are about the configuration, name the flag at fault (as "field" in
  // their ErrorInfo) and say what to do.
  static absl::StatusOr<std::unique_ptr<Server>> Start(Options options);

  // As Shutdown() with no grace.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Where it listens, with the ports that the system chose; the second is empty where there is
  // none.
  const std::string& address() const;
  const std::string& metrics_address() const;

  // Stops: health says NOT_SERVING, no new jobs are taken, watches and long polls end with
  // UNAVAILABLE and a hint to connect again, other calls get `grace` to end by themselves. Returns
  // when all is over. Further calls do nothing.
  void Shutdown(absl::Duration grace);

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hopscope::server

#endif  // HOPSCOPE_SERVER_SERVER_H_

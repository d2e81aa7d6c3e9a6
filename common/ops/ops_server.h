// The plain HTTP endpoint of a program for its operators: /metrics for Prometheus, /livez and
// /readyz for probes. Nothing secret is there, and nothing but GET and HEAD is answered.
//
// /livez answers 200 where every liveness check is OK, else 503; /readyz the same with the
// readiness checks. The body of a 503 names the checks that failed. A check that hangs makes the
// probe time out, which counts as failed too.
#ifndef HOPSCOPE_COMMON_OPS_OPS_SERVER_H_
#define HOPSCOPE_COMMON_OPS_OPS_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/address.h"
#include "prometheus/collectable.h"

namespace hopscope::ops {

class OpsServer {
 public:
  // Part of a program's health. `run` is called on the server's threads, by several at once.
  struct Check {
    std::string name;
    std::function<absl::Status()> run;
  };

  struct Options {
    // HOST:PORT; port 0: the system chooses one.
    std::string listen;
    // Name of the flag that `listen` came from, for errors.
    std::string flag = "--metrics_listen";
    // What /metrics shows, in this order.
    std::vector<std::shared_ptr<prometheus::Collectable>> metrics;
    std::vector<Check> live;
    std::vector<Check> ready;
  };

  // Serves from now on. INVALID_ARGUMENT where `listen` is no address, FAILED_PRECONDITION (reason
  // ADDRESS_IN_USE) where it cannot be had.
  static absl::StatusOr<std::unique_ptr<OpsServer>> Start(Options options);

  // Waits for requests in progress.
  ~OpsServer();
  OpsServer(const OpsServer&) = delete;
  OpsServer& operator=(const OpsServer&) = delete;

  // Where it listens, with the port that the system chose.
  const common::HostPort& address() const;

 private:
  struct Impl;
  explicit OpsServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hopscope::ops

#endif  // HOPSCOPE_COMMON_OPS_OPS_SERVER_H_

// The flags of a worker program, and what they must be.
#ifndef HOPSCOPE_WORKER_LINK_WORKER_FLAGS_H_
#define HOPSCOPE_WORKER_LINK_WORKER_FLAGS_H_

#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/logging.h"

namespace hopscope::link {

// As given; the defaults are the flags'.
struct WorkerFlags {
  std::string server;  // set by AddWorkerFlags
  std::string device = "auto";
  int threads = 0;  // 0: one for each processor that the process may use
  std::string model_root;
  std::string metrics_listen;
  int prefetch_ms = 500;
  std::string grace = "30s";
  bool allow_insecure = false;
  std::string ready_file;
  std::string log_format = "text";
  std::string log_level = "info";
};

// What they say.
struct WorkerSettings {
  std::string server;  // HOST:PORT
  absl::Duration prefetch;
  absl::Duration grace;
  common::LogOptions log;
};

// Adds them to a program's command line. `flags` must outlive `app`. The default of --server is
// $HOPSCOPE_SERVER, else 127.0.0.1:7070.
void AddWorkerFlags(CLI::App* app, WorkerFlags* flags);

// INVALID_ARGUMENT or FAILED_PRECONDITION naming the flag, with what to do. Leaves --device and
// --threads, which are the engine's, --metrics_listen and --ready_file to those who use them.
absl::StatusOr<WorkerSettings> CheckWorkerFlags(const WorkerFlags& flags);

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_WORKER_FLAGS_H_

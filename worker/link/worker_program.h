// A worker program but for its engine: logs, signals, the metrics endpoint, the connection, the
// loop, and the exit code.
#ifndef HOPSCOPE_WORKER_LINK_WORKER_PROGRAM_H_
#define HOPSCOPE_WORKER_LINK_WORKER_PROGRAM_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/engine/engine.h"
#include "worker/link/worker_flags.h"

namespace hopscope::link {

// Exit codes of worker programs.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;  // the server refuses the worker, or the engine is dead
inline constexpr int kExitConfiguration = 2;  // a flag is wrong

// "PROGRAM: MESSAGE" on standard error. Returns `code`.
int ExitWithMessage(absl::string_view program, const absl::Status& error, int code);

// Makes the engine, before any thread but one that waits for signals exists.
using EngineMaker = std::function<absl::StatusOr<std::unique_ptr<engine::Engine>>()>;

// Works until SIGTERM or SIGINT, and returns the exit code. Called once, by main, while no other
// thread exists. Ends the process itself where the engine does not stop.
int RunWorkerProgram(absl::string_view program, const WorkerFlags& flags,
                     const EngineMaker& make_engine);

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_WORKER_PROGRAM_H_

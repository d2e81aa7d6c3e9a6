// A program that runs beside this one.
#ifndef HOPSCOPE_CLIENT_CLI_CHILD_PROCESS_H_
#define HOPSCOPE_CLIENT_CLI_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/mutex.h"

namespace hopscope::cli {

struct ChildProcessOptions {
  // For messages.
  std::string name;
  // Path of the program, then its arguments.
  std::vector<std::string> command;
  // Gets standard output and standard error.
  std::string log_path;
  // Path of a `hopscope`, which then runs the command in its own place such that the kernel sends
  // it SIGTERM when the thread that started it ends, however it ends (see ExecWithParent). Empty:
  // the child outlives a parent that is killed.
  std::string launcher;
};

// Started with posix_spawn (a fork after gRPC has started may hang), in a process group of its own,
// so that Ctrl-C on a terminal reaches the parent alone, and without the parent's files and blocked
// signals. The destructor kills what still runs. Thread-safe.
class ChildProcess {
 public:
  // FAILED_PRECONDITION, reason PROGRAM_NOT_FOUND, where there is no such program.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(ChildProcessOptions options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  const std::string& name() const { return options_.name; }
  pid_t pid() const { return pid_; }

  // How it ended: "exit code 1" or "signal 9 (Killed)". Nothing while it runs.
  std::optional<std::string> Ended();
  // Asks it to end (SIGTERM), or ends it (SIGKILL). Nothing happens where it has.
  void Terminate();
  void Kill();
  // True where it has ended by then.
  bool WaitFor(absl::Duration timeout);

  // The last lines of its log, each after "  | ".
  std::string LogTail(int lines) const;

 private:
  ChildProcess(ChildProcessOptions options, pid_t pid) : options_(std::move(options)), pid_(pid) {}

  const ChildProcessOptions options_;
  const pid_t pid_;
  common::Mutex mutex_;
  std::optional<std::string> ended_ ABSL_GUARDED_BY(mutex_);
};

// What the launcher does with arguments `PARENT PROGRAM ARGUMENT...`: asks the kernel for SIGTERM
// at its parent's end, and becomes the program. Returns an exit code where that does not work, or
// the parent has ended already.
int ExecWithParent(const std::vector<std::string>& arguments);

// First argument of `hopscope` that leads there.
inline constexpr char kExecWithParentCommand[] = "--exec_with_parent";

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_CHILD_PROCESS_H_

#include "client/cli/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/status.h"
#include "common/utf8.h"

extern char** environ;

namespace hopscope::cli {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(10);
// Of the end of a log that is read for its last lines.
constexpr std::streamoff kLogTailBytes = 16 << 10;

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string EndText(int status) {
  if (WIFSIGNALED(status)) {
    return absl::StrCat("signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  }
  return absl::StrCat("exit code ", WEXITSTATUS(status));
}

// What a new process starts with: no input, its log for output, no other open files, its own
// process group, and the signals as a shell would leave them.
class SpawnSetting {
 public:
  explicit SpawnSetting(const std::string& log_path) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, 1, log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                     0600);
    posix_spawn_file_actions_adddup2(&actions_, 1, 2);
    posix_spawn_file_actions_addclosefrom_np(&actions_, 3);
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSetting() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnSetting(const SpawnSetting&) = delete;
  SpawnSetting& operator=(const SpawnSetting&) = delete;

  int Spawn(std::vector<std::string>& command, pid_t* pid) {
    std::vector<char*> arguments = Pointers(command);
    return posix_spawn(pid, arguments[0], &actions_, &attributes_, arguments.data(), environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(ChildProcessOptions options) {
  if (access(options.command[0].c_str(), X_OK) != 0) {
    return common::MakeError(absl::StatusCode::kFailedPrecondition, "PROGRAM_NOT_FOUND",
                             absl::StrCat(options.command[0], ": ", std::strerror(errno)),
                             {{"value", options.command[0]}});
  }
  std::vector<std::string> command = options.command;
  if (!options.launcher.empty()) {
    command.insert(command.begin(),
                   {options.launcher, kExecWithParentCommand, absl::StrCat(getpid())});
  }
  SpawnSetting setting(options.log_path);
  pid_t pid = 0;
  if (const int error = setting.Spawn(command, &pid); error != 0) {
    return common::MakeError(absl::StatusCode::kFailedPrecondition, "PROGRAM_NOT_STARTED",
                             absl::StrCat("cannot start ", command[0], ": ", std::strerror(error)));
  }
  return std::unique_ptr<ChildProcess>(new ChildProcess(std::move(options), pid));
}

ChildProcess::~ChildProcess() {
  Kill();
  WaitFor(absl::InfiniteDuration());
}

std::optional<std::string> ChildProcess::Ended() {
  common::MutexLock lock(&mutex_);
  if (!ended_.has_value()) {
    int status = 0;
    const pid_t pid = waitpid(pid_, &status, WNOHANG);
    if (pid == pid_) {
      ended_ = EndText(status);
    } else if (pid < 0 && errno == ECHILD) {
      ended_ = "an unknown result";
    }
  }
  return ended_;
}

void ChildProcess::Terminate() {
  if (Ended().has_value()) return;
  kill(pid_, SIGTERM);
}

void ChildProcess::Kill() {
  // Not reaped, so the id is still this child's.
  if (Ended().has_value()) return;
  kill(pid_, SIGKILL);
}

bool ChildProcess::WaitFor(absl::Duration timeout) {
  const absl::Time end = absl::Now() + timeout;
  while (!Ended().has_value()) {
    if (absl::Now() >= end) return false;
    absl::SleepFor(kPollInterval);
  }
  return true;
}

std::string ChildProcess::LogTail(int lines) const {
  std::ifstream file(options_.log_path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const std::streamoff size = file.tellg();
  const std::streamoff start = size > kLogTailBytes ? size - kLogTailBytes : 0;
  std::string text(static_cast<size_t>(size - start), '\0');
  file.seekg(start);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  std::vector<std::string> all =
      absl::StrSplit(common::ReplaceInvalidUtf8(text), '\n', absl::SkipEmpty());
  std::string tail;
  const size_t first =
      all.size() > static_cast<size_t>(lines) ? all.size() - static_cast<size_t>(lines) : 0;
  for (size_t i = first; i < all.size(); ++i)
    absl::StrAppend(&tail, tail.empty() ? "" : "\n", "  | ", all[i]);
  return tail;
}

int ExecWithParent(const std::vector<std::string>& arguments) {
  pid_t parent = 0;
  if (arguments.size() < 2 || !absl::SimpleAtoi(arguments[0], &parent)) {
    std::fprintf(stderr, "hopscope %s: PARENT PROGRAM [ARGUMENT...]\n", kExecWithParentCommand);
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  // The parent may have ended before the kernel was asked.
  if (getppid() != parent) return 1;
  std::vector<std::string> command(arguments.begin() + 1, arguments.end());
  std::vector<char*> pointers = Pointers(command);
  execv(pointers[0], pointers.data());
  std::fprintf(stderr, "cannot run %s: %s\n", pointers[0], std::strerror(errno));
  return 127;
}

}  // namespace hopscope::cli

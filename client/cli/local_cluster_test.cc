#include "client/cli/local_cluster.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/mutex.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::cli {
namespace {

using ::testing::HasSubstr;

// Programs that only do as a server and a worker seem: shell scripts. What they were started with
// is in a file.
constexpr char kScript[] = R"(#!/bin/sh
echo "$@" >> FOLDER/started
while [ $# -gt 0 ]; do [ "$1" = --ready_file ] && ready=$2; shift; done
trap 'echo stopped NAME >> FOLDER/stopped; exit 0' TERM
BEFORE
echo $$ >> FOLDER/pids
echo '{"listen": "127.0.0.1:4711"}' > "$ready.tmp" && mv "$ready.tmp" "$ready"
while :; do sleep 0.02; done
)";

class LocalClusterTest : public testing::Test {
 protected:
  LocalClusterTest() {
    std::string path = testing::TempDir() + "/cluster-XXXXXX";
    folder_ = mkdtemp(path.data());
    std::filesystem::create_directory(folder_ / "tmp");
    setenv("TMPDIR", (folder_ / "tmp").c_str(), 1);
    options_.server_program = Program("server", "");
    options_.worker_program = Program("worker", "");
    options_.cancellation = &cancellation_;
    options_.on_message = [this](const std::string& message) {
      common::MutexLock lock(&mutex_);
      messages_.push_back(message);
    };
  }
  ~LocalClusterTest() override {
    unsetenv("TMPDIR");
    std::filesystem::remove_all(folder_);
  }

  static std::string Replace(std::string text, const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
    return text;
  }

  // `before`: what it does before it is ready.
  std::string Program(const std::string& name, const std::string& before) {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path) << Replace(Replace(Replace(kScript, "BEFORE", before), "NAME", name),
                                   "FOLDER", folder_.string());
    chmod(path.c_str(), 0755);
    return path.string();
  }

  std::string Read(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<pid_t> Pids() const {
    std::ifstream file(folder_ / "pids");
    std::vector<pid_t> pids;
    for (pid_t pid; file >> pid;) pids.push_back(pid);
    return pids;
  }
  size_t TemporaryFiles() const {
    const auto files = std::filesystem::directory_iterator(folder_ / "tmp");
    return static_cast<size_t>(std::distance(begin(files), end(files)));
  }
  std::vector<std::string> messages() {
    common::MutexLock lock(&mutex_);
    return messages_;
  }

  std::filesystem::path folder_;
  client::Cancellation cancellation_;
  LocalClusterOptions options_;
  common::Mutex mutex_;
  std::vector<std::string> messages_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(LocalClusterTest, StartsServerAndWorkersAndStopsThem) {
  options_.model_root = "models";
  options_.workers = 2;
  options_.threads = 3;
  options_.device = "cpu";
  {
    const auto cluster = StartLocalCluster(options_);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_EQ((*cluster)->address(), "127.0.0.1:4711");
    EXPECT_TRUE((*cluster)->lost().ok());
    EXPECT_EQ(Pids().size(), 3u);
    EXPECT_EQ(TemporaryFiles(), 1u);
    const std::string started = Read("started");
    EXPECT_THAT(started,
                HasSubstr("--listen 127.0.0.1:0 --metrics_listen 127.0.0.1:0 --state_dir "));
    EXPECT_THAT(started,
                HasSubstr("--server 127.0.0.1:4711 --device cpu --threads 3 --model_root models "
                          "--metrics_listen 127.0.0.1:0 --ready_file "));
  }
  for (const pid_t pid : Pids()) EXPECT_EQ(kill(pid, 0), -1) << "still there";
  EXPECT_EQ(Read("stopped"), "stopped worker\nstopped worker\nstopped server\n");
  EXPECT_EQ(TemporaryFiles(), 0u);
}

TEST_F(LocalClusterTest, NeedsNoWorkers) {
  options_.workers = 0;
  const auto cluster = StartLocalCluster(options_);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(Pids().size(), 1u);
}

TEST_F(LocalClusterTest, AServerThatEndsBeforeItIsReadyShowsItsLog) {
  options_.server_program = Program("server", "echo 'no such folder: models' >&2; exit 2");
  const auto cluster = StartLocalCluster(options_);
  EXPECT_EQ(common::ErrorReason(cluster.status()), "PROGRAM_ENDED");
  EXPECT_EQ(cluster.status().message(),
            "the local server ended before it was ready (exit code 2); its log ends with\n"
            "  | no such folder: models");
  EXPECT_EQ(TemporaryFiles(), 0u);
}

TEST_F(LocalClusterTest, AWorkerThatEndsBeforeItIsReadyStopsTheServerToo) {
  options_.worker_program = Program("worker", "echo 'no device cuda:9' >&2; exit 2");
  const auto cluster = StartLocalCluster(options_);
  EXPECT_THAT(
      std::string(cluster.status().message()),
      ::testing::AllOf(HasSubstr("the local worker-1 ended before it was ready (exit code 2)"),
                       HasSubstr("  | no device cuda:9")));
  ASSERT_EQ(Pids().size(), 1u);
  EXPECT_EQ(kill(Pids()[0], 0), -1);
  EXPECT_EQ(Read("stopped"), "stopped server\n");
}

TEST_F(LocalClusterTest, AProgramThatIsNotThereIsNamed) {
  options_.worker_program = "/no/such/worker";
  const auto cluster = StartLocalCluster(options_);
  EXPECT_EQ(common::ErrorReason(cluster.status()), "PROGRAM_NOT_FOUND");
  EXPECT_THAT(std::string(cluster.status().message()), HasSubstr("/no/such/worker"));
}

TEST_F(LocalClusterTest, AProgramThatIsNeverReadyIsGivenUp) {
  options_.server_program = Program("server", "echo loading; while :; do sleep 0.02; done");
  options_.start_timeout = absl::Milliseconds(300);
  const auto cluster = StartLocalCluster(options_);
  EXPECT_EQ(common::ErrorReason(cluster.status()), "PROGRAM_NOT_READY");
  EXPECT_THAT(std::string(cluster.status().message()),
              HasSubstr("within 300ms; its log ends with\n  | loading"));
}

TEST_F(LocalClusterTest, CancellationEndsTheStart) {
  options_.server_program = Program("server", "echo > FOLDER/waits; while :; do sleep 0.02; done");
  std::thread canceller([this] {
    while (!std::filesystem::exists(folder_ / "waits")) absl::SleepFor(absl::Milliseconds(5));
    cancellation_.Cancel();
  });
  EXPECT_EQ(StartLocalCluster(options_).status().code(), absl::StatusCode::kCancelled);
  canceller.join();
}

TEST_F(LocalClusterTest, TheLossOfTheServerCancelsWhatUsesIt) {
  const auto cluster = StartLocalCluster(options_);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  kill(Pids()[0], SIGKILL);
  EXPECT_TRUE(cancellation_.WaitFor(absl::Minutes(1)));
  EXPECT_THAT(std::string((*cluster)->lost().message()),
              HasSubstr("the local server ended by itself (signal 9"));
}

TEST_F(LocalClusterTest, TheLossOfOneWorkerIsToldAndTheLossOfAllCancels) {
  options_.workers = 2;
  const auto cluster = StartLocalCluster(options_);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  kill(Pids()[1], SIGKILL);
  while (messages().empty()) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_THAT(messages()[0], HasSubstr("ended by itself (signal 9"));
  EXPECT_FALSE(cancellation_.cancelled());
  EXPECT_TRUE((*cluster)->lost().ok());
  kill(Pids()[2], SIGKILL);
  EXPECT_TRUE(cancellation_.WaitFor(absl::Minutes(1)));
  EXPECT_THAT(std::string((*cluster)->lost().message()), HasSubstr("no local worker is left"));
}

TEST_F(LocalClusterTest, AProgramThatDoesNotStopIsKilled) {
  options_.worker_program = Program("worker", "trap '' TERM");
  options_.stop_timeout = absl::Milliseconds(200);
  { ASSERT_TRUE(StartLocalCluster(options_).ok()); }
  for (const pid_t pid : Pids()) EXPECT_EQ(kill(pid, 0), -1) << "still there";
  EXPECT_EQ(TemporaryFiles(), 0u);
}

TEST(FindProgramsTest, TheyAreBesideThisOneUnlessNamed) {
  LocalClusterOptions options;
  FindPrograms(
      [](const std::string& name) {
        return name == "HOPSCOPE_SERVER_PROGRAM" ? "/opt/server" : "";
      },
      &options);
  EXPECT_EQ(options.server_program, "/opt/server");
  EXPECT_EQ(std::filesystem::path(options.worker_program).filename(), "hopscope-worker");
  EXPECT_EQ(std::filesystem::path(options.worker_program).parent_path(),
            std::filesystem::read_symlink("/proc/self/exe").parent_path());
}

}  // namespace
}  // namespace hopscope::cli

// What tests of commands share: a folder with a spec, and a server that has one job.
#ifndef HOPSCOPE_CLIENT_CLI_COMMAND_TEST_FIXTURE_H_
#define HOPSCOPE_CLIENT_CLI_COMMAND_TEST_FIXTURE_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/local_cluster.h"
#include "client/cli/test_environment.h"
#include "client/cli/test_events.h"
#include "client/fake_event_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::cli {

inline constexpr char kSpec[] =
    "name: sweep\ntasks:\n  - {task: number, hops: [1, 9], samples: 100, checkpoints: [a]}\n";

class CommandTest : public testing::Test {
 protected:
  CommandTest() {
    std::string path = testing::TempDir() + "/app-XXXXXX";
    folder_ = mkdtemp(path.data());
    std::ofstream(folder_ / "spec.yaml") << kSpec;
  }
  ~CommandTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  int Run(std::vector<std::string> arguments) { return world_.Run(std::move(arguments)); }
  std::string out() const { return world_.out(); }
  std::string err() const { return world_.err(); }
  client::MockConnection& connection() { return world_.connection(); }

  // A server with one job of one cell that ends in this state, and its results.
  void ServeJob(v1::EvalJob::State end) {
    v1::CreateEvalJobResponse created;
    *created.mutable_job() = MakeJob(1, 100);
    created.mutable_job()->add_warnings("vocabulary is larger");
    ON_CALL(connection(), CreateEvalJob(testing::_)).WillByDefault(testing::Return(created));
    v1::GetEvalJobResponse got;
    *got.mutable_job() = MakeJob(1, 100);
    got.mutable_job()->set_state(end);
    ON_CALL(connection(), GetEvalJob(testing::_)).WillByDefault(testing::Return(got));
    ON_CALL(connection(), WatchEvalJob(testing::_)).WillByDefault([end](const auto&) {
      v1::JobTotals totals;
      totals.set_cells(1);
      totals.set_cells_completed(1);
      return std::make_unique<client::FakeEventReader>(std::vector<v1::EvalEvent>{
          StateEvent(1, v1::EvalJob::STATE_RUNNING),
          CellEvent(2, MakeResult(MakeCell(0, 1, 0), 100, 75)), FinishedEvent(3, end, totals)});
    });
    v1::ListEvalResultsResponse results;
    *results.add_cells() = MakeResult(MakeCell(0, 1, 0), 100, 75);
    *results.add_heads() = MakeScores(MakeCell(0, 1, 0), "positional", 1, 1, {0.95});
    *results.add_heads() = MakeScores(MakeCell(0, 1, 0), "symbolic", 1, 1, {0.05});
    ON_CALL(connection(), ListEvalResults(testing::_)).WillByDefault(testing::Return(results));
    v1::GetCapabilitiesResponse capabilities;
    capabilities.set_version("0.1.0");
    ON_CALL(connection(), GetCapabilities(testing::_)).WillByDefault(testing::Return(capabilities));
  }

  std::filesystem::path folder_;
  TestEnvironment world_;
};

// Is there until it is destroyed, or lost from the start.
class FakeCluster : public LocalCluster {
 public:
  FakeCluster(absl::Status lost, bool* stopped) : lost_(std::move(lost)), stopped_(stopped) {}
  ~FakeCluster() override { *stopped_ = true; }
  const std::string& address() const override { return address_; }
  absl::Status lost() const override { return lost_; }

 private:
  const std::string address_ = "127.0.0.1:43210";
  const absl::Status lost_;
  bool* const stopped_;
};

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_COMMAND_TEST_FIXTURE_H_

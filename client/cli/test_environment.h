// A world for commands in tests: streams in memory, a connection whose answers the test gives,
// interrupts on demand.
#ifndef HOPSCOPE_CLIENT_CLI_TEST_ENVIRONMENT_H_
#define HOPSCOPE_CLIENT_CLI_TEST_ENVIRONMENT_H_

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/app.h"
#include "client/cli/environment.h"
#include "client/cli/interrupts.h"
#include "client/mock_connection.h"
#include "common/clock.h"
#include "gmock/gmock.h"

namespace hopscope::cli {

class TestEnvironment {
 public:
  TestEnvironment() {
    environment_.console.out = &out_;
    environment_.console.err = &err_;
    environment_.getenv = [this](const std::string& name) { return variables_[name]; };
    environment_.interrupts = &interrupts_;
    environment_.connect =
        [this](
            client::ConnectOptions options) -> absl::StatusOr<std::unique_ptr<client::Connection>> {
      connect_options_ = options;
      if (connection_ == nullptr)
        return absl::UnavailableError("no second connection in this test");
      return std::move(connection_);
    };
    environment_.start_local_cluster =
        [](LocalClusterOptions) -> absl::StatusOr<std::unique_ptr<LocalCluster>> {
      return absl::UnimplementedError("no cluster in this test");
    };
  }

  int Run(std::vector<std::string> arguments) { return RunApp(arguments, environment_); }

  Environment& environment() { return environment_; }
  std::map<std::string, std::string>& variables() { return variables_; }
  FakeInterrupts& interrupts() { return interrupts_; }
  // What the next command connects to; gone once it has.
  client::MockConnection& connection() { return *connection_; }
  // Also null: the command did not connect.
  void NewConnection() {
    connection_ = std::make_unique<testing::NiceMock<client::MockConnection>>();
  }
  // What the command asked for.
  const client::ConnectOptions& connect_options() const { return connect_options_; }
  std::string out() const { return out_.str(); }
  std::string err() const { return err_.str(); }
  std::ostringstream& out_stream() { return out_; }
  void ClearOutput() {
    out_.str("");
    err_.str("");
  }

 private:
  std::ostringstream out_;
  std::ostringstream err_;
  std::map<std::string, std::string> variables_;
  FakeInterrupts interrupts_;
  std::unique_ptr<testing::NiceMock<client::MockConnection>> connection_ =
      std::make_unique<testing::NiceMock<client::MockConnection>>();
  client::ConnectOptions connect_options_;
  Environment environment_;
};

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_TEST_ENVIRONMENT_H_

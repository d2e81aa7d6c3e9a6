#include "common/ops/ops_server.h"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "common/ops/http_get.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/counter.h"
#include "prometheus/registry.h"

namespace hopscope::ops {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<OpsServer> StartServer(OpsServer::Options options) {
  options.listen = "127.0.0.1:0";
  absl::StatusOr<std::unique_ptr<OpsServer>> server = OpsServer::Start(std::move(options));
  EXPECT_TRUE(server.ok()) << server.status();
  return server.ok() ? *std::move(server) : nullptr;
}

TEST(OpsServer, ServesMetricsOnThePortThatItNames) {
  auto registry = std::make_shared<prometheus::Registry>();
  prometheus::BuildCounter()
      .Name("hopscope_things_total")
      .Help("Things.")
      .Register(*registry)
      .Add({{"kind", "good"}})
      .Increment(3);
  const auto server = StartServer({.metrics = {registry}});
  ASSERT_GT(server->address().port, 0);
  const HttpAnswer answer = HttpGet(server->address(), "/metrics");
  EXPECT_EQ(answer.code, 200);
  EXPECT_THAT(answer.head, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(answer.body, HasSubstr("# TYPE hopscope_things_total counter"));
  EXPECT_THAT(answer.body, HasSubstr("hopscope_things_total{kind=\"good\"} 3"));
}

TEST(OpsServer, ProbesFollowTheirChecks) {
  std::atomic<bool> engine_ok{true};
  const auto server = StartServer(
      {.live = {{"engine",
                 [&] { return engine_ok ? absl::OkStatus() : absl::InternalError("no answer"); }}},
       .ready = {{"server", [] { return absl::OkStatus(); }},
                 {"store", [] { return absl::UnavailableError("disk is full"); }}}});
  EXPECT_EQ(HttpGet(server->address(), "/livez").code, 200);
  engine_ok = false;
  EXPECT_EQ(HttpGet(server->address(), "/livez").code, 503);
  EXPECT_EQ(HttpGet(server->address(), "/livez").body, "engine: no answer\n");
  engine_ok = true;
  EXPECT_EQ(HttpGet(server->address(), "/livez").code, 200);
  const HttpAnswer ready = HttpGet(server->address(), "/readyz");
  EXPECT_EQ(ready.code, 503);
  EXPECT_EQ(ready.body, "store: disk is full\n");
}

TEST(OpsServer, AnswersNothingElse) {
  const auto server = StartServer({});
  EXPECT_EQ(HttpGet(server->address(), "/").code, 404);
  EXPECT_EQ(HttpGet(server->address(), "/etc/passwd").code, 404);
  EXPECT_EQ(HttpGet(server->address(), "/metrics/../../etc/passwd").code, 404);
  EXPECT_EQ(HttpRequest(server->address(), "POST", "/metrics").code, 405);
  EXPECT_EQ(HttpRequest(server->address(), "DELETE", "/livez").code, 405);
  const HttpAnswer head = HttpRequest(server->address(), "HEAD", "/livez");
  EXPECT_EQ(head.code, 200);
  EXPECT_EQ(head.body, "");
}

class Broken : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override {
    throw std::runtime_error("cannot collect");
  }
};

TEST(OpsServer, AnExceptionIsAnAnswer) {
  const auto server = StartServer({.metrics = {std::make_shared<Broken>()}});
  EXPECT_EQ(HttpGet(server->address(), "/metrics").code, 500);
  EXPECT_EQ(HttpGet(server->address(), "/livez").code, 200);
}

TEST(OpsServer, ATakenPortIsACleanError) {
  const auto server = StartServer({});
  const absl::Status status = OpsServer::Start({.listen = server->address().ToString()}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(common::ErrorReason(status), "ADDRESS_IN_USE");
  EXPECT_THAT(std::string(status.message()), HasSubstr(server->address().ToString()));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--metrics_listen"));
  EXPECT_EQ(HttpGet(server->address(), "/livez").code, 200);
}

TEST(OpsServer, ABadAddressIsACleanError) {
  EXPECT_EQ(OpsServer::Start({.listen = "nonsense"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  // TEST-NET-1 of RFC 5737: no machine has this address.
  EXPECT_EQ(OpsServer::Start({.listen = "192.0.2.1:0"}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(OpsServer, ServesManyAtOnce) {
  auto registry = std::make_shared<prometheus::Registry>();
  const auto server = StartServer({.metrics = {registry}});
  std::atomic<int> ok{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) ok += HttpGet(server->address(), "/metrics").code == 200;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ok, 160);
}

}  // namespace
}  // namespace hopscope::ops

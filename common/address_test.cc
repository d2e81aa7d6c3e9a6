#include "common/address.h"

#include "common/status.h"
#include "gtest/gtest.h"

namespace hopscope::common {
namespace {

TEST(ParseHostPort, ReadsNamesAndAddresses) {
  const struct {
    const char* text;
    const char* host;
    int port;
  } cases[] = {
      {"127.0.0.1:7070", "127.0.0.1", 7070},
      {"localhost:0", "localhost", 0},
      {"[::1]:65535", "::1", 65535},
      {"0.0.0.0:80", "0.0.0.0", 80},
      {"gpu-7.cluster.local:1", "gpu-7.cluster.local", 1},
  };
  for (const auto& c : cases) {
    const absl::StatusOr<HostPort> parsed = ParseHostPort("--listen", c.text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->host, c.host);
    EXPECT_EQ(parsed->port, c.port);
    EXPECT_EQ(parsed->ToString(), c.text);
  }
}

TEST(ParseHostPort, RefusesTheRestAndNamesTheFlag) {
  for (const char* text : {"", ":", "7070", ":7070", "host:", "host:65536", "host:-1", "host:+1",
                           "host: 1", "::1:7070", "[::1]", "[::1]7070", "[]:1", "[1.2.3.4]:1",
                           "[::zz]:1", "ho st:1", "host:99999999999", "http://host:1", "a,b:1"}) {
    const absl::StatusOr<HostPort> parsed = ParseHostPort("--listen", text);
    ASSERT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(ErrorReason(parsed.status()), "BAD_ADDRESS");
    EXPECT_EQ(GetErrorInfo(parsed.status())->metadata().at("field"), "--listen");
  }
}

TEST(IsLoopback, KnowsWhatOnlyThisMachineReaches) {
  for (const char* host : {"localhost", "127.0.0.1", "127.8.9.10", "::1"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "example.com",
                           "localhost.example.com", "::ffff:127.0.0.1", "fe80::1", ""}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

}  // namespace
}  // namespace hopscope::common

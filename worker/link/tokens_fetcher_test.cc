#include "worker/link/tokens_fetcher.h"

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/link/fake_dispatch_stub.h"

namespace hopscope::link {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kDigest[] = "sha256:1";

TokensFetcher::Options Quick() {
  return {.backoff = {.initial = absl::Milliseconds(1), .max = absl::Milliseconds(2)}};
}

// Lines {"tokens":[0]} to {"tokens":[count - 1]}.
std::vector<std::string> Lines(int count) {
  std::vector<std::string> lines;
  for (int i = 0; i < count; ++i) lines.push_back(absl::StrCat("{\"tokens\":[", i, "]}"));
  return lines;
}

class TokensFetcherTest : public ::testing::Test {
 protected:
  FakeDispatchStub stub_;
  engine::CancelFlag cancel_;
};

TEST_F(TokensFetcherTest, ReadsARangeInPages) {
  stub_.SetTokens(kDigest, Lines(100), /*page_bytes=*/7);
  TokensFetcher fetcher(Quick(), &stub_);
  const auto lines = fetcher.Read(kDigest, 40, 3, cancel_);
  ASSERT_TRUE(lines.ok()) << lines.status();
  ASSERT_EQ((*lines)->size(), 3);
  EXPECT_THAT((**lines)[0].tokens, ElementsAre(40));
  EXPECT_THAT((**lines)[2].tokens, ElementsAre(42));
}

TEST_F(TokensFetcherTest, WhatWasReadLatelyIsNotReadAgain) {
  stub_.SetTokens(kDigest, Lines(100), 1 << 20);
  TokensFetcher::Options options = Quick();
  options.cache_bytes = 40;  // two ranges of a line each
  TokensFetcher fetcher(options, &stub_);
  for (const int64_t first : {1, 2, 1, 2}) {
    ASSERT_TRUE(fetcher.Read(kDigest, first, 1, cancel_).ok());
  }
  EXPECT_EQ(stub_.seen().fetches.size(), 2);
  ASSERT_TRUE(fetcher.Read(kDigest, 3, 1, cancel_).ok());  // takes the place of 1
  ASSERT_TRUE(fetcher.Read(kDigest, 2, 1, cancel_).ok());
  EXPECT_EQ(stub_.seen().fetches.size(), 3);
  ASSERT_TRUE(fetcher.Read(kDigest, 1, 1, cancel_).ok());
  EXPECT_EQ(stub_.seen().fetches.size(), 4);
}

TEST_F(TokensFetcherTest, AServerThatIsAwayIsAskedUntilItIsBack) {
  stub_.SetTokens(kDigest, Lines(3), 1 << 20);
  stub_.Down();
  TokensFetcher fetcher(Quick(), &stub_);
  std::thread back([this] {
    EXPECT_TRUE(stub_.Await([](const auto& seen) { return seen.failed_calls >= 3; }));
    stub_.Up();
  });
  EXPECT_TRUE(fetcher.Read(kDigest, 0, 3, cancel_).ok());
  back.join();
}

TEST_F(TokensFetcherTest, ACancelledRunWaitsForNoServer) {
  stub_.Down();
  TokensFetcher fetcher(Quick(), &stub_);
  std::thread canceller([this] {
    EXPECT_TRUE(stub_.Await([](const auto& seen) { return seen.failed_calls >= 1; }));
    cancel_.Cancel();
  });
  EXPECT_EQ(fetcher.Read(kDigest, 0, 3, cancel_).status().code(), absl::StatusCode::kCancelled);
  canceller.join();
}

TEST_F(TokensFetcherTest, ErrorsOfTheServerFailTheAttempt) {
  TokensFetcher fetcher(Quick(), &stub_);
  const absl::Status missing = fetcher.Read(kDigest, 0, 1, cancel_).status();
  EXPECT_EQ(common::ErrorReason(missing), "INTERNAL");
  EXPECT_THAT(missing.message(), HasSubstr("no such sequences"));
  stub_.SetTokens(kDigest, {"{\"tokens\":[1]}", "{\"tokens\":[]}", ""}, 1 << 20);
  EXPECT_THAT(fetcher.Read(kDigest, 0, 2, cancel_).status().message(), HasSubstr("tokens:2"));
  EXPECT_THAT(fetcher.Read(kDigest, 0, 1, cancel_).status(), absl::OkStatus());
}

}  // namespace
}  // namespace hopscope::link

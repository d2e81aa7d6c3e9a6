#include "worker/link/leaser.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/link/fake_dispatch_stub.h"

namespace hopscope::link {
namespace {

using ::testing::ElementsAre;

using Seen = FakeDispatchStub::Seen;

// Wants a number of units, less what it has got.
class CountingListener : public Leaser::Listener {
 public:
  int WantedUnits() override {
    common::MutexLock lock(&mutex_);
    return wanted_;
  }
  std::vector<std::string> LoadedDigests() override { return {"sha256:1", "sha256:2"}; }
  void OnLeases(google::protobuf::RepeatedPtrField<v1::UnitLease> leases) override {
    common::MutexLock lock(&mutex_);
    for (const v1::UnitLease& lease : leases) leased_.push_back(lease.attempt_id());
    wanted_ -= leases.size();
    changed_.SignalAll();
  }
  void OnForgotten() override {
    common::MutexLock lock(&mutex_);
    ++forgotten_;
    changed_.SignalAll();
  }

  void SetWanted(int wanted) {
    common::MutexLock lock(&mutex_);
    wanted_ = wanted;
  }
  bool AwaitLeases(size_t count) {
    return Await([this, count]()
                     ABSL_NO_THREAD_SAFETY_ANALYSIS { return leased_.size() >= count; });
  }
  bool AwaitForgotten() {
    return Await([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return forgotten_ > 0; });
  }
  std::vector<std::string> leased() {
    common::MutexLock lock(&mutex_);
    return leased_;
  }

 private:
  bool Await(const std::function<bool()>& condition) {
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    common::MutexLock lock(&mutex_);
    while (!condition()) {
      if (absl::Now() >= deadline) return false;
      changed_.WaitWithTimeout(&mutex_, deadline - absl::Now());
    }
    return true;
  }

  common::Mutex mutex_;
  common::CondVar changed_;
  int wanted_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> leased_ ABSL_GUARDED_BY(mutex_);
  int forgotten_ ABSL_GUARDED_BY(mutex_) = 0;
};

class LeaserTest : public testing::Test {
 protected:
  LeaserTest() {
    options_.worker_id = "workers/w";
    options_.min_spacing = absl::ZeroDuration();
    options_.backoff = {.initial = absl::Milliseconds(1), .max = absl::Milliseconds(2)};
    Register();
  }

  void Register() {
    Call call(absl::Seconds(1));
    v1::RegisterWorkerRequest request;
    request.set_worker_id("workers/w");
    ASSERT_TRUE(server_.RegisterWorker(request, &call).ok());
  }

  void Start(int wanted) {
    listener_.SetWanted(wanted);
    leaser_ = std::make_unique<Leaser>(options_, &server_, &clock_, &listener_);
    leaser_->Start();
  }

  common::FakeClock clock_{absl::UnixEpoch()};
  FakeDispatchStub server_;
  CountingListener listener_;
  Leaser::Options options_;
  std::unique_ptr<Leaser> leaser_;
};

TEST_F(LeaserTest, AsksForWhatIsWantedAndNoMore) {
  for (const char* id : {"a", "b", "c", "d"}) server_.AddUnit(id);
  Start(3);
  ASSERT_TRUE(listener_.AwaitLeases(3));
  leaser_->Stop();
  EXPECT_THAT(listener_.leased(), ElementsAre("a", "b", "c"));
  const Seen seen = server_.seen();
  ASSERT_EQ(seen.lease_requests.size(), 1u);
  EXPECT_EQ(seen.lease_requests[0].worker_id(), "workers/w");
  EXPECT_EQ(seen.lease_requests[0].max_units(), 3);
  EXPECT_EQ(seen.lease_requests[0].wait_ms(), 10'000);
  EXPECT_THAT(seen.lease_requests[0].loaded_digests(), ElementsAre("sha256:1", "sha256:2"));
}

TEST_F(LeaserTest, WaitsForUnitsThatComeLater) {
  Start(2);
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.lease_requests.size() == 1; }));
  server_.AddUnit("a");
  ASSERT_TRUE(listener_.AwaitLeases(1));
  server_.AddUnit("b");
  ASSERT_TRUE(listener_.AwaitLeases(2));
  EXPECT_EQ(server_.seen().lease_requests[1].max_units(), 1);
}

TEST_F(LeaserTest, AsksAgainWhenTheWishChanges) {
  server_.AddUnit("a");
  Start(0);
  listener_.SetWanted(1);
  leaser_->Changed();
  ASSERT_TRUE(listener_.AwaitLeases(1));
}

TEST_F(LeaserTest, TriesUntilTheServerIsBack) {
  server_.Down();
  Start(1);
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.failed_calls >= 20; }));
  server_.AddUnit("a");
  server_.Up();
  ASSERT_TRUE(listener_.AwaitLeases(1));
}

TEST_F(LeaserTest, SaysThatTheServerDoesNotKnowTheWorker) {
  server_.Up(/*forget=*/true);
  Start(1);
  ASSERT_TRUE(listener_.AwaitForgotten());
  Register();
  server_.AddUnit("a");
  ASSERT_TRUE(listener_.AwaitLeases(1));
}

TEST_F(LeaserTest, StopLetsAPollEndByItselfSoThatNoLeaseIsLost) {
  options_.patience = absl::Seconds(30);
  Start(1);
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.lease_requests.size() == 1; }));
  std::thread stop([this] { leaser_->Stop(); });
  server_.AddUnit("a");
  stop.join();
  EXPECT_THAT(listener_.leased(), ElementsAre("a"));
}

TEST_F(LeaserTest, StopCancelsAPollThatTheServerDoesNotEnd) {
  options_.patience = absl::Milliseconds(1);
  Start(1);
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.lease_requests.size() == 1; }));
  leaser_->Stop();
  EXPECT_EQ(server_.seen().lease_requests.size(), 1u);
}

}  // namespace
}  // namespace hopscope::link

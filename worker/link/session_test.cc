#include "worker/link/session.h"

#include <memory>

#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/link/fake_dispatch_stub.h"

namespace hopscope::link {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Seen = FakeDispatchStub::Seen;

// Remembers what it was told.
class RecordingListener : public Session::Listener {
 public:
  std::vector<std::string> HeldAttempts() override {
    common::MutexLock lock(&mutex_);
    return held_;
  }
  void OnCancelled(const google::protobuf::RepeatedPtrField<std::string>& attempt_ids) override {
    common::MutexLock lock(&mutex_);
    for (const std::string& id : attempt_ids) {
      cancelled_.push_back(id);
      held_.erase(std::remove(held_.begin(), held_.end(), id), held_.end());
    }
    changed_.SignalAll();
  }
  void OnDrain(bool drain) override {
    common::MutexLock lock(&mutex_);
    drains_.push_back(drain);
    changed_.SignalAll();
  }
  void OnConnection(bool connected) override {
    common::MutexLock lock(&mutex_);
    connections_.push_back(connected);
    changed_.SignalAll();
  }
  void OnRefused(absl::Status error) override {
    common::MutexLock lock(&mutex_);
    refusals_.push_back(std::move(error));
    changed_.SignalAll();
  }

  void SetHeld(std::vector<std::string> held) {
    common::MutexLock lock(&mutex_);
    held_ = std::move(held);
  }

  template <class T>
  bool Await(std::vector<T> RecordingListener::*list, size_t count) {
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    common::MutexLock lock(&mutex_);
    while ((this->*list).size() < count) {
      if (absl::Now() >= deadline) return false;
      changed_.WaitWithTimeout(&mutex_, deadline - absl::Now());
    }
    return true;
  }

  common::Mutex mutex_;
  common::CondVar changed_;
  std::vector<std::string> held_;
  std::vector<std::string> cancelled_;
  std::vector<bool> drains_;
  std::vector<bool> connections_;
  std::vector<absl::Status> refusals_;
};

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    Session::Options options;
    options.worker_id = "workers/w";
    options.description.set_host("here");
    options.description.set_capacity(2);
    options.min_spacing = absl::ZeroDuration();
    options.backoff = {.initial = absl::Milliseconds(1), .max = absl::Milliseconds(2)};
    session_ = std::make_unique<Session>(options, &server_, &clock_, &listener_);
  }

  common::FakeClock clock_{absl::UnixEpoch()};
  FakeDispatchStub server_;
  RecordingListener listener_;
  std::unique_ptr<Session> session_;
};

TEST_F(SessionTest, RegistersAndThenPollsWithWhatIsHeld) {
  listener_.SetHeld({"a", "b"});
  EXPECT_FALSE(session_->connected());
  session_->Start();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return !seen.heartbeats.empty(); }));
  EXPECT_TRUE(session_->connected());
  const Seen seen = server_.seen();
  ASSERT_EQ(seen.registrations.size(), 1u);
  EXPECT_EQ(seen.registrations[0].worker_id(), "workers/w");
  EXPECT_EQ(seen.registrations[0].description().host(), "here");
  const v1::HeartbeatRequest& heartbeat = seen.heartbeats[0];
  EXPECT_EQ(heartbeat.worker_id(), "workers/w");
  EXPECT_THAT(heartbeat.attempt_ids(), ElementsAre("a", "b"));
  EXPECT_EQ(heartbeat.wait_ms(), 10'000);  // the server's interval
  EXPECT_FALSE(heartbeat.draining());
  EXPECT_FALSE(heartbeat.known_drain());
}

TEST_F(SessionTest, RegistersOnceTheServerIsThere) {
  server_.Down();
  session_->Start();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.registrations.size() >= 20; }));
  EXPECT_FALSE(session_->connected());
  server_.Up();
  ASSERT_TRUE(listener_.Await(&RecordingListener::connections_, 1));
  session_->Stop();
  EXPECT_THAT(listener_.connections_, ElementsAre(true));
}

TEST_F(SessionTest, GoesOnWithoutRegisteringWhenTheServerWasAwayForAWhile) {
  session_->Start();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.heartbeats.size() == 1; }));
  server_.Down();
  ASSERT_TRUE(listener_.Await(&RecordingListener::connections_, 2));
  EXPECT_FALSE(session_->connected());
  server_.Up();
  ASSERT_TRUE(listener_.Await(&RecordingListener::connections_, 3));
  EXPECT_EQ(server_.seen().registrations.size(), 1u);
  session_->Stop();
  EXPECT_THAT(listener_.connections_, ElementsAre(true, false, true));
}

TEST_F(SessionTest, FirstHeartbeatAfterAnOutageAsksForAnAnswerAtOnce) {
  session_->Start();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.heartbeats.size() == 1; }));
  server_.Down();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.failed_calls >= 3; }));
  server_.Up();
  ASSERT_TRUE(server_.Await([](const Seen& seen) {
    return seen.heartbeats.size() > 2 && seen.heartbeats.back().wait_ms() > 0;
  }));
  const Seen seen = server_.seen();
  EXPECT_EQ(seen.heartbeats[seen.heartbeats.size() - 2].wait_ms(), 0);
}

TEST_F(SessionTest, RegistersAgainWhereTheServerHasForgottenTheWorker) {
  session_->Start();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.heartbeats.size() == 1; }));
  server_.Down();
  server_.Up(/*forget=*/true);
  ASSERT_TRUE(server_.Await([](const Seen& seen) {
    return seen.registrations.size() == 2 && seen.heartbeats.back().wait_ms() > 0;
  }));
  EXPECT_EQ(server_.seen().registrations[1].worker_id(), "workers/w");
  EXPECT_TRUE(session_->connected());
}

TEST_F(SessionTest, RegistersAgainWhenAnotherCallSaysSo) {
  session_->Start();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.heartbeats.size() == 1; }));
  session_->Forgotten();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.registrations.size() == 2; }));
}

TEST_F(SessionTest, RefusedVersionEndsTheSession) {
  server_.RefuseRegistration(common::MakeError(absl::StatusCode::kFailedPrecondition,
                                               "VERSION_MISMATCH", "worker 1.0.0, server 2.0.0"));
  session_->Start();
  ASSERT_TRUE(listener_.Await(&RecordingListener::refusals_, 1));
  session_->Stop();
  EXPECT_EQ(listener_.refusals_[0].message(), "worker 1.0.0, server 2.0.0");
  EXPECT_EQ(server_.seen().registrations.size(), 1u);
  EXPECT_THAT(listener_.connections_, IsEmpty());
}

TEST_F(SessionTest, OtherErrorsOfARegistrationAreTriedAgain) {
  server_.RefuseRegistration(absl::PermissionDeniedError("unknown token"));
  session_->Start();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.registrations.size() >= 3; }));
  server_.RefuseRegistration(absl::OkStatus());
  ASSERT_TRUE(listener_.Await(&RecordingListener::connections_, 1));
}

TEST_F(SessionTest, PassesOnWhatTheServerCancels) {
  listener_.SetHeld({"a", "b"});
  session_->Start();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.heartbeats.size() == 1; }));
  server_.CancelAttempt("b");
  ASSERT_TRUE(listener_.Await(&RecordingListener::cancelled_, 1));
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.heartbeats.size() == 2; }));
  EXPECT_THAT(listener_.cancelled_, ElementsAre("b"));
  EXPECT_THAT(server_.seen().heartbeats[1].attempt_ids(), ElementsAre("a"));
}

TEST_F(SessionTest, PassesOnTheDrainWishOncePerChange) {
  session_->Start();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.heartbeats.size() == 1; }));
  server_.SetDrain(true);
  ASSERT_TRUE(listener_.Await(&RecordingListener::drains_, 1));
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.heartbeats.size() == 2; }));
  EXPECT_TRUE(server_.seen().heartbeats[1].known_drain());
  server_.SetDrain(false);
  ASSERT_TRUE(listener_.Await(&RecordingListener::drains_, 2));
  session_->Stop();
  EXPECT_THAT(listener_.drains_, ElementsAre(true, false));
}

TEST_F(SessionTest, PollTellsTheServerOfNewAttemptsAtOnce) {
  session_->Start();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.heartbeats.size() == 1; }));
  listener_.SetHeld({"new"});
  session_->Poll();
  // One that is answered at once, so that no further Poll can keep it from being answered, then a
  // long one again.
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.heartbeats.size() == 3; }));
  const Seen seen = server_.seen();
  EXPECT_EQ(seen.heartbeats[1].wait_ms(), 0);
  EXPECT_THAT(seen.heartbeats[1].attempt_ids(), ElementsAre("new"));
  EXPECT_EQ(seen.heartbeats[2].wait_ms(), 10'000);
  EXPECT_TRUE(session_->connected());
}

TEST_F(SessionTest, AnnouncesThatTheWorkerDrains) {
  session_->Start();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.heartbeats.size() == 1; }));
  session_->AnnounceDraining();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.heartbeats.size() == 3; }));
  EXPECT_TRUE(server_.seen().heartbeats[1].draining());
  EXPECT_TRUE(server_.seen().heartbeats[2].draining());
}

TEST_F(SessionTest, SaysGoodbyeHoldingNothing) {
  listener_.SetHeld({"a"});
  session_->Start();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.heartbeats.size() == 1; }));
  session_->Stop();
  session_->SayGoodbye();
  const v1::HeartbeatRequest goodbye = server_.seen().heartbeats.back();
  EXPECT_TRUE(goodbye.draining());
  EXPECT_THAT(goodbye.attempt_ids(), IsEmpty());
  EXPECT_EQ(goodbye.wait_ms(), 0);
}

TEST_F(SessionTest, SaysNoGoodbyeToAServerThatIsAway) {
  server_.Down();
  session_->Start();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.failed_calls >= 1; }));
  session_->Stop();
  session_->SayGoodbye();
  EXPECT_THAT(server_.seen().heartbeats, IsEmpty());
}

TEST_F(SessionTest, TellsWhenItsThreadHangs) {
  session_->Start();
  ASSERT_TRUE(server_.Await([](const Seen& seen) { return seen.heartbeats.size() == 1; }));
  EXPECT_LE(session_->SinceStep(), session_->MaxStep());
  clock_.Advance(absl::Minutes(5));  // a poll that neither its wait nor its deadline has ended
  EXPECT_GT(session_->SinceStep(), session_->MaxStep());
}

}  // namespace
}  // namespace hopscope::link

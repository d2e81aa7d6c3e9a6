#include "client/resuming_event_reader.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "client/mock_stub.h"
#include "common/mutex.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::client {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::Return;

v1::EvalEvent Event(int64_t sequence) {
  v1::EvalEvent event;
  event.set_job("jobs/1");
  event.set_sequence(sequence);
  if (sequence > 0) event.mutable_warning()->set_reason("W");
  if (sequence == 0) event.mutable_unit_started();
  return event;
}

v1::EvalEvent Finished(int64_t sequence) {
  v1::EvalEvent event;
  event.set_sequence(sequence);
  event.mutable_job_finished()->set_state(v1::EvalJob::STATE_SUCCEEDED);
  return event;
}

// What one stream gives before it ends.
struct Script {
  std::vector<v1::EvalEvent> events;
  absl::Status end;
  // Instead of ending: blocks until it is cancelled.
  bool hang = false;
};

class ScriptedStream : public EventStream {
 public:
  explicit ScriptedStream(Script script) : script_(std::move(script)) {}

  absl::StatusOr<std::optional<v1::EvalEvent>> Read() override {
    if (next_ < script_.events.size()) return script_.events[next_++];
    if (script_.hang) {
      common::MutexLock lock(&mutex_);
      reading_ = true;
      changed_.SignalAll();
      while (!cancelled_) changed_.Wait(&mutex_);
      return absl::CancelledError("cancelled");
    }
    if (!script_.end.ok()) return script_.end;
    return std::optional<v1::EvalEvent>();
  }

  void Cancel() override {
    common::MutexLock lock(&mutex_);
    cancelled_ = true;
    changed_.SignalAll();
  }

  void AwaitRead() {
    common::MutexLock lock(&mutex_);
    while (!reading_) changed_.Wait(&mutex_);
  }

 private:
  const Script script_;
  size_t next_ = 0;
  common::Mutex mutex_;
  common::CondVar changed_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

class ResumingEventReaderTest : public testing::Test {
 protected:
  ResumingEventReaderTest() : clock_(absl::UnixEpoch()) {
    options_.clock = &clock_;
    options_.seed = 1;
    options_.cancellation = &cancellation_;
    options_.pause = [this](absl::Duration wait, Cancellation&) { clock_.Advance(wait); };
    options_.on_retry = [this](const RetryNotice&) { ++retries_; };
    ON_CALL(stub_, WatchEvalJob(_, _))
        .WillByDefault([this](auto, const v1::WatchEvalJobRequest& request) {
          EXPECT_EQ(request.name(), "jobs/1");
          asked_after_.push_back(request.after_sequence());
          EXPECT_FALSE(scripts_.empty());
          // The last script is for all streams that follow.
          Script script = scripts_.front();
          if (scripts_.size() > 1) scripts_.pop_front();
          auto stream = std::make_unique<ScriptedStream>(std::move(script));
          last_stream_ = stream.get();
          return stream;
        });
  }

  void MakeReader(int64_t after = 0) {
    v1::WatchEvalJobRequest request;
    request.set_name("jobs/1");
    request.set_after_sequence(after);
    reader_ = MakeResumingEventReader(&stub_, request, options_);
  }

  // Sequences up to the end, and its status.
  std::pair<std::vector<int64_t>, absl::Status> ReadAll(int64_t after = 0) {
    MakeReader(after);
    std::vector<int64_t> sequences;
    while (true) {
      const auto event = reader_->Next();
      if (!event.ok()) return {sequences, event.status()};
      if (!event->has_value()) return {sequences, absl::OkStatus()};
      sequences.push_back((*event)->sequence());
    }
  }

  common::FakeClock clock_;
  Cancellation cancellation_;
  ConnectionOptions options_;
  testing::NiceMock<MockStub> stub_;
  std::deque<Script> scripts_;
  std::vector<int64_t> asked_after_;
  ScriptedStream* last_stream_ = nullptr;
  int retries_ = 0;
  std::unique_ptr<EventReader> reader_;
};

TEST_F(ResumingEventReaderTest, GivesEachDurableEventOnceAcrossCutStreams) {
  scripts_ = {{{Event(1), Event(2)}, absl::UnavailableError("cut")},
              {{}, absl::UnavailableError("refused")},
              {{Event(3)}, absl::CancelledError("server stops")},
              {{Event(4), Finished(5)}, absl::OkStatus()}};
  const auto [sequences, status] = ReadAll();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(sequences, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(asked_after_, ElementsAre(0, 2, 2, 3));
  EXPECT_EQ(retries_, 3);
}

TEST_F(ResumingEventReaderTest, StartsWhereItIsTold) {
  scripts_ = {{{Event(8), Finished(9)}, absl::OkStatus()}};
  EXPECT_THAT(ReadAll(7).first, ElementsAre(8, 9));
  EXPECT_THAT(asked_after_, ElementsAre(7));
}

TEST_F(ResumingEventReaderTest, RepeatedEventsAreDropped) {
  scripts_ = {{{Event(1), Event(2)}, absl::UnavailableError("cut")},
              {{Event(1), Event(2), Event(2), Event(3), Finished(4)}, absl::OkStatus()}};
  EXPECT_THAT(ReadAll().first, ElementsAre(1, 2, 3, 4));
}

TEST_F(ResumingEventReaderTest, LiveEventsPassThrough) {
  scripts_ = {{{Event(0), Event(1), Event(0)}, absl::UnavailableError("cut")},
              {{Event(0), Finished(2)}, absl::OkStatus()}};
  EXPECT_THAT(ReadAll().first, ElementsAre(0, 1, 0, 0, 2));
}

TEST_F(ResumingEventReaderTest, AMissingEventIsAskedForAgain) {
  scripts_ = {{{Event(1), Event(3)}, absl::OkStatus()},
              {{Event(2), Event(3), Finished(4)}, absl::OkStatus()}};
  const auto [sequences, status] = ReadAll();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(sequences, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(asked_after_, ElementsAre(0, 1));
}

TEST_F(ResumingEventReaderTest, AnEventThatTheServerLostIsAnError) {
  scripts_ = {{{Event(1), Event(3)}, absl::OkStatus()}, {{Event(3)}, absl::OkStatus()}};
  const auto [sequences, status] = ReadAll();
  EXPECT_THAT(sequences, ElementsAre(1));
  EXPECT_EQ(common::ErrorReason(status), "EVENTS_MISSING");
}

TEST_F(ResumingEventReaderTest, ErrorsThatTheServerMeantEndIt) {
  scripts_ = {
      {{Event(1)}, common::MakeError(absl::StatusCode::kNotFound, "JOB_NOT_FOUND", "deleted")}};
  const auto [sequences, status] = ReadAll();
  EXPECT_THAT(sequences, ElementsAre(1));
  EXPECT_EQ(common::ErrorReason(status), "JOB_NOT_FOUND");
  EXPECT_EQ(reader_->Next().status(), status) << "it stays ended";
  EXPECT_EQ(asked_after_.size(), 1u);
}

TEST_F(ResumingEventReaderTest, GivesUpWhereNoServerComesBackInTime) {
  options_.reconnect_for = absl::Minutes(5);
  scripts_ = {{{Event(1)}, absl::UnavailableError("cut")}, {{}, absl::UnavailableError("refused")}};
  const auto [sequences, status] = ReadAll();
  EXPECT_THAT(sequences, ElementsAre(1));
  EXPECT_EQ(status, absl::UnavailableError("refused"));
  EXPECT_LE(clock_.Now() - absl::UnixEpoch(), absl::Minutes(5));
  EXPECT_GE(clock_.Now() - absl::UnixEpoch(), absl::Minutes(4));
}

TEST_F(ResumingEventReaderTest, EachEventStartsTheTimeAnew) {
  options_.reconnect_for = absl::Seconds(1);
  scripts_.clear();
  for (int i = 1; i <= 40; ++i) scripts_.push_back({{Event(i)}, absl::UnavailableError("cut")});
  scripts_.push_back({{Finished(41)}, absl::OkStatus()});
  const auto [sequences, status] = ReadAll();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(sequences.size(), 41u);
  EXPECT_GT(clock_.Now() - absl::UnixEpoch(), absl::Seconds(1));
}

TEST_F(ResumingEventReaderTest, AStreamThatEndsEarlyWithOkIsResumed) {
  v1::GetEvalJobResponse running;
  running.mutable_job()->set_state(v1::EvalJob::STATE_RUNNING);
  EXPECT_CALL(stub_, GetEvalJob(_, _)).WillOnce(Return(running));
  scripts_ = {{{Event(1)}, absl::OkStatus()}, {{Finished(2)}, absl::OkStatus()}};
  EXPECT_THAT(ReadAll().first, ElementsAre(1, 2));
}

TEST_F(ResumingEventReaderTest, NothingComesAfterTheLastEventOfAFinishedJob) {
  v1::GetEvalJobResponse done;
  done.mutable_job()->set_state(v1::EvalJob::STATE_SUCCEEDED);
  done.mutable_job()->set_last_sequence(9);
  EXPECT_CALL(stub_, GetEvalJob(_, _)).WillOnce(Return(done));
  scripts_ = {{{}, absl::OkStatus()}};
  const auto [sequences, status] = ReadAll(9);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(sequences.empty());
  EXPECT_EQ(asked_after_.size(), 1u);
}

TEST_F(ResumingEventReaderTest, CancelFromAnotherThreadReachesABlockedReader) {
  scripts_ = {{{Event(1)}, absl::OkStatus(), /*hang=*/true}};
  MakeReader();
  ASSERT_TRUE(reader_->Next().ok());
  std::thread canceller([this] {
    last_stream_->AwaitRead();
    reader_->Cancel();
  });
  EXPECT_EQ(reader_->Next().status().code(), absl::StatusCode::kCancelled);
  canceller.join();
  EXPECT_EQ(reader_->Next().status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(asked_after_.size(), 1u) << "no other stream was opened";
}

TEST_F(ResumingEventReaderTest, CancellingTheConnectionReachesABlockedReader) {
  scripts_ = {{{Event(1)}, absl::OkStatus(), /*hang=*/true}};
  MakeReader();
  ASSERT_TRUE(reader_->Next().ok());
  std::thread canceller([this] {
    last_stream_->AwaitRead();
    cancellation_.Cancel();
  });
  EXPECT_EQ(reader_->Next().status().code(), absl::StatusCode::kCancelled);
  canceller.join();
}

}  // namespace
}  // namespace hopscope::client
